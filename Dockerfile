# Berth's image. The base is an argument; any glibc image with Python 3.11+ works:
#   make image BASE=registry.example/python:3.13-slim
# The default is pinned by the digest of its index, for all architectures; `make pins` renews it.
ARG BASE=docker.io/library/python:3.13-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

FROM ${BASE} AS build
ENV UV_PROJECT_ENVIRONMENT=/opt/berth UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never \
    UV_SYSTEM_CERTS=1 UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1 UV_NO_BUILD=1
WORKDIR /src
# Build tools are locked as well, and nothing else is downloaded for the build.
COPY image/build-tools.txt ./image/
RUN python3 -m venv /tools \
    && /tools/bin/pip install --quiet --no-cache-dir --no-deps --only-binary :all: \
       --require-hashes -r image/build-tools.txt
# Dependencies first: they change less often than the source.
COPY pyproject.toml uv.lock README.md LICENSE ./
# An extra, such as otel, for traces.
ARG EXTRA=
# The Kubernetes client is 1 800 generated modules, half of the image. They work without their
# sources and docstrings, and the tests of numpy are not needed.
RUN /tools/bin/uv sync --frozen --no-dev --no-install-project ${EXTRA:+--extra "$EXTRA"} \
    && cd /opt/berth/lib/python3*/site-packages \
    && find kubernetes -name __pycache__ -prune -exec rm -r {} + \
    && /opt/berth/bin/python -OO -m compileall -q -b kubernetes \
    && find kubernetes -name '*.py' -delete \
    && find numpy websocket -type d -name tests -prune -exec rm -r {} +
# All files that .dockerignore does not exclude.
COPY . .
# Overrides the version in the source, for builds of releases from tags.
ARG VERSION=
ARG BASE
# The bill of materials contains the locked packages that are installed.
RUN if [ -n "$VERSION" ]; then sed -i "s/^version = .*/version = \"$VERSION\"/" pyproject.toml; fi \
    && /tools/bin/python -m hatchling build --target wheel --directory /wheel >/dev/null \
    && /tools/bin/uv pip install --quiet --python /opt/berth/bin/python --prefix /own --no-deps \
       /wheel/*.whl \
    && /tools/bin/uv export --frozen --no-dev ${EXTRA:+--extra "$EXTRA"} --quiet --preview-features sbom-export \
       --format cyclonedx1.5 --output-file /tmp/locked.json >/dev/null \
    && /opt/berth/bin/python image/sbom.py pyproject.toml "$BASE" </tmp/locked.json >/own/sbom.cdx.json

FROM ${BASE}
LABEL org.opencontainers.image.title="berth" \
      org.opencontainers.image.description="A Kubernetes scheduler that scores every node" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/berth/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# Berth writes only to standard error: the root file system may be read-only.
USER 65532:65532
EXPOSE 10259
ENTRYPOINT ["berth"]
CMD ["run"]
COPY --from=build /opt/berth /opt/berth
# Files that change with each version are in a separate layer of a few megabytes.
COPY --from=build /own /opt/berth
