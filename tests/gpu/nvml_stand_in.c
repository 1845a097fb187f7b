/* A stand-in for libnvidia-ml.so.1: the calls that labkit makes, on cards that do not exist.
   NVML_STAND_IN holds words, separated by commas:
     one          one card instead of two        mixed        the two cards are of different kinds
     mig          card 0 is in MIG mode, with two instances
     no_gpm       no performance metrics         no_fields    power, energy, clocks, temperature, rates not supported
     no_rights    clock reasons need a permission                   odd_name  a name that is no UTF-8
     no_driver    nvmlInit: driver not loaded    mismatch     nvmlInit: driver and library differ
     no_dram      one of these metrics is missing             gpm_nan      one of them is no number
     lost=N       from the Nth call about a card on, the GPU is lost
   Counters move with every reading, so that differences can be checked. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, TOO_SMALL = 7, NOT_LOADED = 9, LOST = 15, MISMATCH = 18 };

typedef struct { int card, instance; unsigned long long energy_mj; } Device;
typedef struct { int ticks; } Sample;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned gpu, memory; } Rates;
typedef struct { unsigned id; int result; double value; const char *names[3]; } Metric;
typedef struct { unsigned version, many; Sample *first, *second; Metric metrics[]; } Metrics;
typedef struct { unsigned version, supported; } Support;

static Device cards[2] = {{0, -1, 1000}, {1, -1, 2000}};
static Device instances[2] = {{0, 0, 0}, {0, 1, 0}};
static int calls = 0, ticks = 0;

static const char *word(const char *name) {
  const char *all = getenv("NVML_STAND_IN"), *found = all ? strstr(all, name) : NULL;
  return found && (found == all || found[-1] == ',') ? found + strlen(name) : NULL;
}

static int state(void) {
  const char *after = word("lost=");
  return after && ++calls > atoi(after) ? LOST : OK;
}

static int gauge(Device *device) {
  int result = state();
  if (result) return result;
  return word("no_fields") || device->instance >= 0 ? UNSUPPORTED : OK;
}

static int text(char *into, unsigned length, const char *from) {
  if (strlen(from) >= length) return TOO_SMALL;
  strcpy(into, from);
  return OK;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return word("no_driver") ? NOT_LOADED : word("mismatch") ? MISMATCH : OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int result) { (void)result; return "an error of the stand-in"; }
int nvmlSystemGetDriverVersion(char *into, unsigned length) { return text(into, length, "580.65.06"); }
int nvmlDeviceGetCount_v2(unsigned *many) { *many = word("one") ? 1 : 2; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, Device **device) { *device = &cards[i]; return i < 2 ? OK : INVALID; }

int nvmlDeviceGetName(Device *device, char *into, unsigned length) {
  if (word("odd_name")) return text(into, length, "NVIDIA \xff");
  if (device->instance >= 0) return text(into, length, "NVIDIA H100 MIG 3g.40gb");
  return text(into, length, word("mixed") && device->card ? "NVIDIA T4" : "NVIDIA H100");
}

int nvmlDeviceGetUUID(Device *device, char *into, unsigned length) {
  static const char *of_instances[] = {"MIG-cccc0000-0000-0000-0000-000000000000", "MIG-dddd0000-0000-0000-0000-000000000000"};
  static const char *of_cards[] = {"GPU-aaaa0000-0000-0000-0000-000000000000", "GPU-bbbb0000-0000-0000-0000-000000000000"};
  return text(into, length, device->instance >= 0 ? of_instances[device->instance] : of_cards[device->card]);
}

int nvmlDeviceGetMigMode(Device *device, unsigned *now, unsigned *pending) {
  *now = *pending = word("mig") && device->card == 0;
  return word("mig") ? OK : UNSUPPORTED;
}
int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *many) { (void)device; *many = 7; return OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(Device *card, unsigned i, Device **device) {
  if (card->card || (i != 1 && i != 4)) return NOT_FOUND; /* the numbers have gaps */
  *device = &instances[i == 4];
  return OK;
}
int nvmlDeviceGetGpuInstanceId(Device *device, unsigned *id) { *id = 5 + device->instance; return OK; }
int nvmlDeviceGetComputeInstanceId(Device *device, unsigned *id) { (void)device; *id = 0; return OK; }

int nvmlDeviceGetMemoryInfo(Device *device, Memory *memory) {
  int result = state();
  if (result) return result;
  memory->total = (device->instance >= 0 ? 40ull : 80ull) << 30;
  memory->used = (unsigned long long)(1 + device->card) << 30;
  memory->free = memory->total - memory->used;
  return OK;
}
int nvmlDeviceGetUtilizationRates(Device *device, Rates *rates) {
  rates->gpu = 90 - 10 * device->card;
  rates->memory = 30;
  return gauge(device);
}
int nvmlDeviceGetPowerUsage(Device *device, unsigned *mw) { *mw = 350500; return gauge(device); }
int nvmlDeviceGetTotalEnergyConsumption(Device *device, unsigned long long *mj) { *mj = device->energy_mj += 500; return gauge(device); }
int nvmlDeviceGetClockInfo(Device *device, int clock, unsigned *mhz) { *mhz = clock == 1 ? 1980 : 2619; return gauge(device); }
int nvmlDeviceGetTemperature(Device *device, int sensor, unsigned *celsius) { (void)sensor; *celsius = 61; return gauge(device); }
int nvmlDeviceGetCurrentClocksEventReasons(Device *device, unsigned long long *bits) {
  *bits = 0x4 | 0x20 | 0x4000;
  return word("no_rights") ? NO_PERMISSION : gauge(device);
}

int nvmlGpmQueryDeviceSupport(Device *device, Support *support) { (void)device; support->supported = !word("no_gpm"); return OK; }
int nvmlGpmSampleAlloc(Sample **sample) { *sample = calloc(1, sizeof(Sample)); return OK; }
int nvmlGpmSampleFree(Sample *sample) { free(sample); return OK; }
int nvmlGpmSampleGet(Device *device, Sample *sample) {
  int result = state();
  if (result) return result;
  if (word("mig") && device->card == 0) return UNSUPPORTED; /* the card in MIG mode has none: its instances have */
  sample->ticks = ++ticks;
  return OK;
}
int nvmlGpmMigSampleGet(Device *card, unsigned gpu_instance, Sample *sample) {
  if (card->instance >= 0 || gpu_instance < 5) return INVALID;
  sample->ticks = ++ticks;
  return state();
}
int nvmlGpmMetricsGet(Metrics *metrics) {
  int newer = metrics->second->ticks - metrics->first->ticks; /* 1 where the samples are in order */
  for (unsigned i = 0; i < metrics->many; i++) {
    Metric *metric = &metrics->metrics[i];
    metric->result = metric->id == 10 && word("no_dram") ? UNSUPPORTED : OK;
    metric->value = (metric->id == 2 ? 62.5 : metric->id == 3 ? 25.0 : metric->id == 10 ? 40.0 : 0.0) * newer;
    if (metric->id == 3 && word("gpm_nan")) metric->value = NAN;
  }
  return metrics->version == 1 ? OK : 25;
}
