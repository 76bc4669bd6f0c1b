/**
 * A client of Prisma: what `prisma generate` writes for a schema without models, cut down to what is used. The command
 * itself downloads a binary that nothing here needs; the library and its driver adapter are the real ones.
 */

import { getPrismaClient, type ITXClientDenyList } from "@prisma/client/runtime/client";
import type { PrismaPg } from "@prisma/adapter-pg";

export interface PrismaClient {
  $connect(): Promise<void>;
  $disconnect(): Promise<void>;
  $queryRawUnsafe<T = unknown>(query: string, ...values: unknown[]): Promise<T>;
  $executeRaw(query: TemplateStringsArray, ...values: unknown[]): Promise<number>;
  $transaction<R>(work: (tx: Omit<PrismaClient, ITXClientDenyList>) => Promise<R>): Promise<R>;
}

interface PrismaClientConstructor {
  new (options: { adapter: PrismaPg }): PrismaClient;
}

// Node has it; the types that this project is compiled with do not.
declare const WebAssembly: { readonly Module: new (bytes: Uint8Array) => object };

// Not literals: these modules have no types.
const compiler = "@prisma/client/runtime/query_compiler_fast_bg.postgresql";
const load = (name: string): Promise<unknown> => import(name);

export const PrismaClient = getPrismaClient({
  previewFeatures: [],
  clientVersion: "7.10.0",
  engineVersion: "0",
  activeProvider: "postgresql",
  inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: "AAAA" },
  compilerWasm: {
    getRuntime: () => load(`${compiler}.mjs`) as never,
    getQueryCompilerWasmModule: async () => {
      const { wasm } = (await load(`${compiler}.wasm-base64.mjs`)) as { wasm: string };
      return new WebAssembly.Module(Buffer.from(wasm, "base64"));
    },
    importName: "./query_compiler_fast_bg.js",
  },
}) as unknown as PrismaClientConstructor;
