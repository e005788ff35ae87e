# The service alone; PostgreSQL and Valkey come from docker-compose.yml.
FROM python:3.13-slim-bookworm AS build

ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /srv/nexus
COPY requirements.lock ./
RUN grep -A9 '^setuptools==' requirements.lock | sed -n '1p;2,${/^    --hash/!q;p}' > build.lock \
    && pip install --no-deps --require-hashes -r build.lock
COPY pyproject.toml README.md ./
COPY composer composer
COPY bot bot
COPY jobs jobs
COPY sql sql
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /dist .

# What runs: no compiler, no test tools, no sources beside the installed package.
FROM python:3.13-slim-bookworm

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements.image.lock ./
RUN pip install --no-deps --require-hashes -r requirements.image.lock && rm requirements.image.lock \
    && useradd --system --uid 10001 --create-home --home-dir /var/lib/nexus nexus
COPY --from=build /dist /dist
RUN pip install --no-deps /dist/*.whl && rm -r /dist

USER nexus
WORKDIR /var/lib/nexus
# Naming the port opens it, on 127.0.0.1 unless NEXUS_WEB_HOST says otherwise.
ENV NEXUS_HOME=/var/lib/nexus NEXUS_WEB_PORT=8080
VOLUME /var/lib/nexus
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health', timeout=5)"]
ENTRYPOINT ["nexus"]
CMD ["run"]
