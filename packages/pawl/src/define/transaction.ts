/** A transaction on Pawl's database that user code writes in, and that commits together with the outcome of its step. Types only. */

/** The open transaction: a client of `pg`. It is begun and ended by the engine. */
export interface Transaction {
  query<Row extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ rows: Row[]; rowCount: number | null }>;
}
