# berth's image. The base is an argument, so that any glibc image with Python 3.11+ will do:
#   make image BASE=registry.example/python:3.13-slim
ARG BASE=docker.io/library/python:3.13-slim

FROM ${BASE} AS build
WORKDIR /src
RUN python3 -m venv /tools && /tools/bin/pip install --quiet --no-cache-dir uv
ENV UV_PROJECT_ENVIRONMENT=/opt/berth UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=1
# Dependencies first: they change less often than the source.
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN /tools/bin/uv sync --frozen --no-dev --no-install-project --no-cache
COPY cache cache
COPY plugins plugins
COPY scheduler scheduler
RUN /tools/bin/uv sync --frozen --no-dev --no-editable --no-cache --compile-bytecode

FROM ${BASE}
LABEL org.opencontainers.image.title="berth" \
      org.opencontainers.image.description="A Kubernetes scheduler that scores every node" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/berth /opt/berth
ENV PATH=/opt/berth/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# Nothing is written but to standard error: the root file system may be read-only.
USER 65532:65532
EXPOSE 10259
ENTRYPOINT ["berth"]
CMD ["run"]
