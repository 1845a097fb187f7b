# JupyterLab with labkit, as a user without rights, on any Debian or Ubuntu base with Python >= 3.11.
#   docker build -t labkit .                      docker run --rm -p 127.0.0.1:8888:8888 --gpus all labkit
# The log shows the address with its token; -e JUPYTER_TOKEN=... sets your own.
ARG BASE_IMAGE=python:3.11-slim
FROM ${BASE_IMAGE}

# g++ runs CUDA kernels on the CPU, for the proof of notebook 04 and of `labkit check-kernel`.
RUN packages="g++"; \
    python3 -c 'import ensurepip, venv' 2>/dev/null || packages="$packages ca-certificates python3 python3-venv"; \
    apt-get update -q \
    && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -c 'import sys; assert sys.version_info >= (3, 11), f"Python >= 3.11 is needed, the base has {sys.version}"' \
    && python3 -m venv /usr/local/labkit \
    && useradd --create-home --shell /bin/bash lab

ENV PATH=/usr/local/labkit/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# First what labkit depends on, for an empty package: this layer is built again only when the requirements change.
# The plugin that is switched off asks about news and looks for updates.
WORKDIR /usr/local/src/labkit
COPY pyproject.toml requirements.lock ./
RUN mkdir labkit && touch labkit/__init__.py README.md LICENSE \
    && pip install --no-cache-dir --disable-pip-version-check -c requirements.lock '.[gpu]' \
    && jupyter labextension disable --level=sys_prefix @jupyterlab/apputils-extension:announcements

COPY README.md LICENSE ./
COPY data data
COPY kernels kernels
COPY labkit labkit
RUN pip install --no-cache-dir --disable-pip-version-check --no-deps --force-reinstall .

COPY --chown=lab:lab notebooks /home/lab/labkit/notebooks
RUN install -d -o lab -g lab /home/lab/labkit /home/lab/labkit/results

USER lab
WORKDIR /home/lab/labkit/notebooks
EXPOSE 8888
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8888/api', timeout=4)"]

# Without JUPYTER_TOKEN, or with an empty one, the server makes up a token of its own: there is no way in without one.
CMD ["jupyter", "lab", "--no-browser", "--ip=0.0.0.0", "--port=8888", "--ServerApp.port_retries=0", \
     "--ServerApp.jpserver_extensions={'labkit.server_extension': True}", \
     "--LabApp.default_url=/lab/tree/01_tune_buckets.ipynb"]
