/**
 * A local Postgres inside its supervisor: prepares, starts and stops the server on one data
 * directory, and knows its address and password. Operations run one after the other, in the order
 * of the requests.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { ensurePassword, writeAccessRules } from "./access.js";
import { runnableBinaries } from "./binaries.js";
import { initialise, isInitialised, repairOwnership } from "./data-directory.js";
import { createDatabase } from "./database.js";
import { LocalPostgresError, toLocalPostgresError } from "./errors.js";
import { findFreePort } from "./free-port.js";
import { initdbIdentity, type Identity } from "./identity.js";
import { invalid, type ValidOptions } from "./options.js";
import { clearOrphan } from "./orphan.js";
import type { RuntimePaths } from "./places.js";
import type { NativePackage } from "./platform.js";
import { Postmaster, type LaunchPlan, type StopMode } from "./postmaster.js";
import type { AttachRequest, Attached } from "./protocol.js";
import { discardTemplate, findOrBuildTemplate, type Template, type TemplateRequest } from "./template.js";

export interface ServerConfiguration {
  options: ValidOptions;
  native: NativePackage;
  identity: Identity | undefined;
  runtime: RuntimePaths;
  cache: string | undefined;
  onProcessChange: (pid: number | undefined) => void;
}

/**
 * PostgreSQL's own default: without TCP it is only the name of the socket, in a directory of our
 * own.
 */
const socketOnlyPort = 5432;
const portAttempts = 10;

export class Server {
  readonly #configuration: ServerConfiguration;
  readonly dataDirectory: string;
  #postmaster: Postmaster | undefined;
  #password = "";
  #isEnding = false;
  #lastOperation: Promise<unknown> = Promise.resolve();

  constructor(configuration: ServerConfiguration) {
    this.#configuration = configuration;
    this.dataDirectory = configuration.options.directory ?? configuration.runtime.throwAwayData;
  }

  /** Prepares everything and starts the server for the first time. */
  boot(): Promise<void> {
    return this.#inTurn(async () => {
      const { native, identity, cache, runtime, options } = this.#configuration;
      const binaries = await runnableBinaries(native, identity, cache, runtime.directory);
      const template = {
        binaries,
        version: native.version,
        identity: initdbIdentity(),
        cache,
        runtimeDirectory: runtime.directory,
      };
      if (options.directory === undefined) mkdirSync(this.dataDirectory, { recursive: true, mode: 0o700 });
      writeFileSync(runtime.note, JSON.stringify({ dataDirectory: this.dataDirectory }));
      const hbaFile = writeAccessRules(runtime.directory, identity);

      const majorVersion = native.version.split(".", 1)[0] ?? "";
      if (isInitialised(this.dataDirectory, majorVersion)) {
        await clearOrphan(this.dataDirectory);
        repairOwnership(this.dataDirectory, identity);
        await this.#startAtAddress(binaries, hbaFile);
      } else {
        await this.#startFresh(template, hbaFile);
      }
    });
  }

  /** A template can be damaged in ways its manifest does not show: then it is made anew, once. */
  async #startFresh(request: TemplateRequest, hbaFile: string): Promise<void> {
    const { identity, options } = this.#configuration;
    const isPersistent = options.directory !== undefined;
    const fillAndStart = async ({ data }: Template) => {
      await initialise(this.dataDirectory, data, identity, isPersistent);
      await this.#startAtAddress(request.binaries, hbaFile);
    };
    const found = await findOrBuildTemplate(request);
    try {
      await fillAndStart(found);
    } catch (error) {
      const mayBeTemplate = found.isCached && toLocalPostgresError(error, "").code === "StartFailed";
      if (!mayBeTemplate || this.#isEnding) throw error;
      discardTemplate(request);
      await fillAndStart(await findOrBuildTemplate(request));
    }
  }

  async #startAtAddress(binaries: string, hbaFile: string): Promise<void> {
    const { options, identity, runtime } = this.#configuration;
    const plan: Omit<LaunchPlan, "port"> = {
      binaries,
      hbaFile,
      identity,
      dataDirectory: this.dataDirectory,
      socketDirectory: runtime.socketDirectory,
      listensOnTcp: options.port !== undefined,
      settings: options.settings,
      logFile: runtime.log,
    };
    for (let attempt = 1; ; attempt++) {
      const port = options.port === "free" ? await findFreePort() : (options.port ?? socketOnlyPort);
      this.#postmaster = new Postmaster({ ...plan, port }, this.#configuration.onProcessChange);
      try {
        await this.#start();
        return;
      } catch (error) {
        const isLostRace =
          error instanceof LocalPostgresError && error.code === "PortTaken" && options.port === "free";
        if (!isLostRace || attempt === portAttempts) throw error;
      }
    }
  }

  async #start(): Promise<void> {
    const postmaster = this.#running();
    // A death that has happened already is heard of when the event loop has gone around once.
    await delay(1);
    if (postmaster.pid !== undefined) return;
    if (this.#isEnding) throw new LocalPostgresError("StartFailed", "the server is ending");
    await postmaster.start();
    this.#password = await ensurePassword(postmaster);
  }

  /** Admits a user: checks that its options fit, starts a killed server, creates the database. */
  attach(request: AttachRequest): Promise<Attached> {
    return this.#inTurn(async () => {
      const postmaster = this.#running();
      this.#refuseOtherWishes(request);
      await this.#start();
      await createDatabase(postmaster, request.database);
      return { directory: this.dataDirectory, url: this.#url(request) };
    });
  }

  #refuseOtherWishes(request: AttachRequest): void {
    const { options } = this.#configuration;
    const running = `the server on ${this.dataDirectory} is already running`;
    const { listensOnTcp, port } = this.#running().plan;
    if (request.port !== undefined && !listensOnTcp) {
      throw invalid(`${running} without a port. Stop its other users first, or leave \`port\` out`);
    }
    if (typeof request.port === "number" && request.port !== port) {
      throw invalid(
        `${running} at port ${port}, not ${request.port}. Stop its other users first, or ask for ${port}`,
      );
    }
    for (const [name, value] of Object.entries(request.settings)) {
      const current = options.settings[name];
      if (current !== value) {
        throw invalid(
          `${running} with ${name} = ${current ?? "its default"}, not ${value}. Stop its other users first, or give ` +
            "every user the same settings",
        );
      }
    }
  }

  #url(request: AttachRequest): string {
    const { plan } = this.#running();
    const database = encodeURIComponent(request.database);
    if (request.port !== undefined)
      return `postgres://postgres:${this.#password}@127.0.0.1:${plan.port}/${database}`;
    const socketDirectory = encodeURIComponent(plan.socketDirectory);
    return `postgres://postgres@localhost:${plan.port}/${database}?host=${socketDirectory}`;
  }

  start(): Promise<void> {
    return this.#inTurn(() => this.#start());
  }

  stop(mode: StopMode): Promise<void> {
    return this.#inTurn(async () => this.#postmaster?.stop(mode));
  }

  /** Stops for good, without waiting for its turn: recovery, for one, may have long to go. */
  async end(mode: StopMode): Promise<void> {
    this.#isEnding = true;
    await this.#postmaster?.stop(mode);
    await this.stop(mode); // what was under way may have started it just now
  }

  restart(mode: StopMode): Promise<void> {
    return this.#inTurn(async () => {
      await this.#running().stop(mode);
      await this.#start();
    });
  }

  get pid(): number | undefined {
    return this.#postmaster?.pid;
  }

  #running(): Postmaster {
    if (this.#postmaster === undefined)
      throw new LocalPostgresError("StartFailed", "the server was never started");
    return this.#postmaster;
  }

  #inTurn<Result>(operation: () => Promise<Result>): Promise<Result> {
    const turn = this.#lastOperation.then(operation);
    this.#lastOperation = turn.catch(() => {});
    return turn;
  }
}
