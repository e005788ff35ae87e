# The service alone; PostgreSQL and Valkey come from docker-compose.yml.
FROM python:3.13-slim-bookworm

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /srv/nexus

# First what changes seldom: these layers are kept until a pin changes.
COPY requirements.lock ./
RUN pip install --no-deps --require-hashes -r requirements.lock

COPY pyproject.toml README.md ./
COPY composer composer
COPY bot bot
COPY jobs jobs
COPY sql sql
RUN pip install --no-deps --no-build-isolation --config-settings editable_mode=compat -e . \
    && useradd --system --uid 10001 --create-home --home-dir /var/lib/nexus nexus

USER nexus
ENV NEXUS_HOME=/var/lib/nexus
VOLUME /var/lib/nexus
ENTRYPOINT ["nexus"]
CMD ["run"]
