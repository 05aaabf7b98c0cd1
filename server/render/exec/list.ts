// The operator's allow-list of renderers (`skerry server --renderers FILE`): a name that services may use → a program
// of this machine.
import { z } from 'zod'
import { durationMs, durationSchema } from '../../../shared/model/resources.ts'
import type { Problem } from '../../../shared/runtime/error.ts'
import { nameSchema } from '../../../shared/runtime/ids.ts'

const absoluteSchema = z
  .string()
  .max(4_096)
  .regex(/^\/[^\0]*$/, 'expected an absolute path')
const memorySchema = z
  .string()
  .regex(/^[1-9][0-9]{0,8}(Mi|Gi)$/, 'expected a whole number with Mi or Gi, such as 512Mi')
  .transform((text) => Number.parseInt(text, 10) * 1024 ** (text.endsWith('Gi') ? 3 : 2))

const entrySchema = z.strictObject({
  command: absoluteSchema,
  /** Before those of the service. */
  args: z.array(z.string().max(1_024)).max(50).default([]),
  /** Files and folders that it sees besides itself and the libraries that it is linked with. */
  readOnly: z.array(absoluteSchema).max(50).default([]),
  memory: memorySchema.optional(),
  timeout: durationSchema.transform(durationMs).optional(),
})
export type ExecEntry = z.infer<typeof entrySchema>

const listSchema = z.record(nameSchema, entrySchema)

/** Reads the list from the file's values; `file` is for messages. */
export function readExecList(value: unknown, file: string): { entries: ReadonlyMap<string, ExecEntry> } | { problems: Problem[] } {
  const read = listSchema.safeParse(value ?? {})
  if (read.success) return { entries: new Map(Object.entries(read.data)) }
  return { problems: read.error.issues.map(({ path, message }) => ({ path: [file, ...path].join(': '), message })) }
}
