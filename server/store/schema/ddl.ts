// Tables of the fleet store on both engines: the few types that differ, and the order of text, which is by bytes on
// both.
import { type CreateTableBuilder, sql, type Transaction } from 'kysely'
import type { Engine } from '../engines/engine.ts'
import type { Tables } from '../tables.ts'

/** The parts of the store that a migration uses. */
export interface Ddl {
  engine: Engine
  trx: Transaction<Tables>
  /** Called after each slice of long work. */
  progress?: ((progress: MigrationProgress) => void) | undefined
}

export interface MigrationProgress {
  what: string
  done: number
  /** Null if it is not known beforehand. */
  total: number | null
}

type NewTable = CreateTableBuilder<string, string>
/** `id`: numbered by the database. */
type Column = [name: string, type: 'text' | 'bigint' | 'id', options?: 'null']

/** SQLite compares text by its bytes; PostgreSQL by the rules of a language unless told otherwise. */
export const textType = (engine: Engine) => (engine === 'postgres' ? sql`text collate "C"` : 'text')

/** Every column is NOT NULL unless it says otherwise. Without `primaryKey` it has a column `id`. */
export function createTable({ engine, trx }: Ddl, name: string, primaryKey: string[], columns: Column[]): NewTable {
  let table: NewTable = trx.schema.createTable(name)
  for (const [column, type, nullable] of columns) {
    if (type === 'id') {
      // On SQLite exactly this is the row's own number.
      if (engine === 'sqlite') table = table.addColumn(column, 'integer', (definition) => definition.primaryKey())
      else table = table.addColumn(column, 'bigint', (definition) => definition.primaryKey().generatedByDefaultAsIdentity())
    } else {
      const own = type === 'text' ? textType(engine) : type
      table = table.addColumn(column, own, (definition) => (nullable === 'null' ? definition : definition.notNull()))
    }
  }
  return primaryKey.length === 0 ? table : table.addPrimaryKeyConstraint(`${name}_pkey`, primaryKey as [string, ...string[]])
}

/** A table that is its own index: for small rows of numbers. Means nothing on PostgreSQL. */
export const withoutRowid = ({ engine }: Ddl, table: NewTable): NewTable =>
  engine === 'sqlite' ? table.modifyEnd(sql`without rowid`) : table

/** Numbers that came later; 0 in the rows that are there. */
export async function addNumbers({ trx }: Ddl, table: string, names: readonly string[]): Promise<void> {
  for (const name of names)
    await trx.schema
      .alterTable(table)
      .addColumn(name, 'bigint', (column) => column.notNull().defaultTo(0))
      .execute()
}

/** Texts that came later; null in the rows that are there. */
export async function addTexts({ engine, trx }: Ddl, table: string, names: readonly string[]): Promise<void> {
  for (const name of names) await trx.schema.alterTable(table).addColumn(name, textType(engine)).execute()
}
