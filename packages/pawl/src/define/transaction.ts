/**
 * The transaction that user code writes in. It commits together with the outcome of its step. Types
 * only.
 */

/** The open transaction: a client of `pg`. The engine begins and ends it. */
export interface Transaction {
  query<Row extends object = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ rows: Row[]; rowCount: number | null }>;
}
