# One image for gatekeeper, reconciler, certgen and the altershield command.
#   docker build -t REGISTRY/altershield:0.1.0 .
# The base image is pinned by the digest of its index, for all platforms. .github/renovate.json renews it.

FROM python:3.11-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b AS build
WORKDIR /src
# The second environment goes into the image. It has neither pip nor setuptools.
RUN python -m venv /opt/build && python -m venv --without-pip /opt/altershield
# Dependencies first: this layer stays while only our own code changes.
COPY requirements.lock requirements.build.lock ./
RUN /opt/build/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.build.lock \
 && /opt/build/bin/pip --python /opt/altershield/bin/python install --no-cache-dir --disable-pip-version-check \
      --no-deps --only-binary :all: --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY altershield/ altershield/
COPY command/ command/
COPY gatekeeper/ gatekeeper/
COPY reconciler/ reconciler/
COPY certgen/ certgen/
COPY console/ console/
COPY kube_base/ kube_base/
RUN /opt/build/bin/pip wheel --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir /opt/build/wheels . \
 && /opt/build/bin/pip --python /opt/altershield/bin/python install --no-cache-dir --disable-pip-version-check \
      --no-index --no-deps /opt/build/wheels/*.whl \
 && /opt/build/bin/pip --python /opt/altershield/bin/python check

FROM python:3.11-slim-bookworm@sha256:0bee7276f83efd4a1ee05bbbf4281d95ed28e079220a9457f25a93e3f1e3c31b
LABEL org.opencontainers.image.title="AlterShield" \
      org.opencontainers.image.description="A release gate for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/altershield /opt/altershield
ENV PATH=/opt/altershield/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# A number, so that Kubernetes can see that it is not root's. The chart names the command of each container.
USER 65532:65532
WORKDIR /
CMD ["altershield", "--help"]
