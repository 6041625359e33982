# One image for gatekeeper, reconciler, certgen and the altershield command.
#   docker build -t altershield/altershield:0.1.0 .

FROM python:3.11-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/altershield
# Dependencies first: this layer stays while only our own code changes.
COPY pyproject.toml .
RUN python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' \
      > requirements.txt \
 && /opt/altershield/bin/pip install --no-cache-dir --disable-pip-version-check -r requirements.txt
COPY README.md LICENSE ./
COPY altershield/ altershield/
COPY gatekeeper/ gatekeeper/
COPY reconciler/ reconciler/
COPY certgen/ certgen/
RUN /opt/altershield/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps . \
 && /opt/altershield/bin/pip uninstall --yes --disable-pip-version-check pip

FROM python:3.11-slim-bookworm
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
