# One binary on Debian slim: the release build of this checkout, the system's root certificates, nothing else.

FROM rust:1.95-slim-bookworm AS build
# The bundled SQLite is C; this image has a compiler for it.
WORKDIR /build
COPY Cargo.toml Cargo.lock ./
COPY src src
COPY migrations migrations
COPY templates templates
COPY config config
# Named by Cargo.toml, so cargo wants to see it.
COPY benches benches
# Registry and build output stay in a cache mount: a change of source rebuilds one crate.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo build --release --locked --bin matins \
 && install -D target/release/matins /out/matins

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin matins \
 && install -d -o matins -g matins /data
COPY --from=build /out/matins /usr/local/bin/matins
# Relative paths of the config (`sqlite://matins.db`, folders of file receivers) end up on the volume.
WORKDIR /data
VOLUME /data
USER 10001:10001
# Inside a container loopback reaches nobody: set [http] listen to 0.0.0.0:8420 in the config, with
# [[web.auth.tokens]]: every address of the API then asks for one, and serving without is refused.
EXPOSE 8420
# The config's own listen address is asked, so this holds whatever port it names.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["matins", "healthcheck", "--config", "/etc/matins/matins.toml"]
ENTRYPOINT ["matins"]
CMD ["serve", "--config", "/etc/matins/matins.toml"]
