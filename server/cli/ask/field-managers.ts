// The field managers of a live object: who wrote which fields, and when.
import { z } from 'zod'
import { AppError } from '../../../shared/runtime/error.ts'
import { type Column, plainText, renderTable } from '../columns.ts'
import { type Context, usesColour } from '../context.ts'
import { answerOf } from './fan-out.ts'
import { refOfAddress } from './live.ts'

const managersSchema = z.object({
  metadata: z.object({
    managedFields: z
      .array(
        z.object({
          manager: z.string().default(''),
          operation: z.string().default(''),
          subresource: z.string().default(''),
          time: z.string().default(''),
          fieldsV1: z.unknown(),
        }),
      )
      .default([]),
  }),
})
type Manager = z.infer<typeof managersSchema>['metadata']['managedFields'][number]

const FIELDS_SHOWN = 5

/** Asks the cluster. One that does not answer, or may not be asked, is a note and no failure. */
export async function printFieldManagers(context: Context, cluster: string, object: string): Promise<void> {
  const { stdout, stderr, signal } = context.io
  try {
    const question = { kind: 'object', ref: refOfAddress(object), managedFields: true } as const
    for await (const line of answerOf(context.client(), cluster, { question }, signal)) {
      const managers = line.t === 'object' ? (managersSchema.safeParse(line.object).data?.metadata.managedFields ?? []) : []
      const newest = managers.toSorted((a, b) => (a.time < b.time ? 1 : a.time > b.time ? -1 : 0))
      if (newest.length > 0)
        stdout.write(`\n${renderTable(COLUMNS, newest, { wide: false, headers: true, colours: usesColour(context.io) })}`)
    }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    stderr.write(`field managers are not shown: ${plainText(error.message)}\n`)
  }
}

const COLUMNS: Column<Manager>[] = [
  { title: 'MANAGER', value: ({ manager, subresource }) => (subresource === '' ? manager : `${manager}/${subresource}`) },
  { title: 'OPERATION', value: ({ operation }) => operation },
  { title: 'TIME', value: ({ time }) => time },
  { title: 'FIELDS', value: ({ fieldsV1 }) => fieldsText(pathsOf(fieldsV1)) },
]

function fieldsText(paths: readonly string[]): string {
  const more = paths.length - FIELDS_SHOWN
  return `${paths.slice(0, FIELDS_SHOWN).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** Paths of fields as `managedFields` nests them: `.spec.replicas`, `.spec.containers[name=web].image`. */
export function pathsOf(fields: unknown, at = ''): string[] {
  if (typeof fields !== 'object' || fields === null) return []
  const below = Object.entries(fields).filter(([key]) => key !== '.')
  if (below.length === 0) return at === '' ? [] : [at]
  return below.flatMap(([key, held]) => pathsOf(held, `${at}${stepText(key)}`))
}

function stepText(key: string): string {
  const rest = key.slice(2)
  if (key.startsWith('f:')) return /^[A-Za-z0-9_-]+$/.test(rest) ? `.${rest}` : `[${JSON.stringify(rest)}]`
  if (!key.startsWith('k:')) return `[${rest}]`
  const parsed = z.record(z.string(), z.unknown()).safeParse(jsonOf(rest)).data ?? {}
  return `[${Object.entries(parsed)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(',')}]`
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
