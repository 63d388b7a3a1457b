# Two images: worker (no torch) and trainer. docs/scaling.md says how they are used.
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS worker
# cuda: ONNX Runtime with the CUDA provider.
ARG ACCELERATOR=cpu
# Optional parts of plyzero, such as openspiel; several are separated by commas.
ARG EXTRAS=
ENV PATH=/opt/plyzero/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 \
    NUMBA_CACHE_DIR=/opt/plyzero/numba-cache
WORKDIR /build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# What plyzero needs comes before plyzero itself, so that a change of its code does not install all of it again.
COPY pyproject.toml constraints.txt README.md LICENSE ./
RUN python3 -m venv /opt/plyzero \
    && pip install --no-cache-dir --constraint constraints.txt ".[${ACCELERATOR/cuda/gpu}${EXTRAS:+,$EXTRAS}]" \
    && rm -rf build ./*.egg-info
COPY plyzero plyzero
COPY games games
COPY selfplay selfplay
COPY trainer trainer
COPY container /opt/plyzero/container
# Everything is compiled here once; container/start copies the result to where a running container may write.
RUN pip install --no-cache-dir --no-deps --force-reinstall . \
    && python -m compileall -q /opt/plyzero/lib \
    && env -C / python /opt/plyzero/container/warm.py \
    && rm -rf /build/* \
    && chmod 755 /opt/plyzero/container/start \
    && install -d -m 1777 /runs /games
ENV NUMBA_CACHE_DIR=/tmp/numba-cache HOME=/tmp
WORKDIR /games
USER 10001:10001
ENTRYPOINT ["/opt/plyzero/container/start"]
CMD ["--help"]

FROM worker AS trainer
# Another index, such as that of torch for processors alone, whose build pip prefers.
ARG PIP_EXTRA_INDEX_URL=
USER 0
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
# The trainer's packages; plyzero itself is there already.
RUN python3 -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['train'], sep='\n')" \
      > train.txt \
    && pip install --no-cache-dir --constraint constraints.txt --requirement train.txt \
    && rm -rf /build/*
WORKDIR /games
USER 10001:10001
