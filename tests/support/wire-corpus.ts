// The wire as it was once recorded: real requests and answers of one version, kept as files, with the keys that signed
// them. `bun tests/support/record-wire.ts` records them; a recorded version is never recorded again once it was
// released.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

export const CORPUS_DIR = join(import.meta.dir, '../fixtures/wire/1')

const messageSchema = z.object({ headers: z.record(z.string(), z.string()), body: z.base64() })
const exchangeSchema = z.object({
  request: messageSchema.extend({ method: z.string(), path: z.string() }),
  answer: messageSchema.extend({ status: z.number() }),
})
export type Exchange = z.infer<typeof exchangeSchema>

const keySchema = z.object({ publicKey: z.string(), privateKey: z.string() })
const settingSchema = z.object({
  server: keySchema,
  agent: z.object({ signing: keySchema, recipient: keySchema }),
  joinToken: z.string(),
  clusterId: z.string(),
  agentId: z.string(),
  /** Digest of each service after the page of that name. */
  digests: z.record(z.string(), z.record(z.string(), z.string())),
})
export type WireSetting = z.infer<typeof settingSchema>

export const jsonOf = ({ body }: { body: string }): Record<string, unknown> => JSON.parse(Buffer.from(body, 'base64').toString())

export class WireCorpus {
  readonly setting: WireSetting
  readonly #exchanges: ReadonlyMap<string, Exchange>

  constructor(setting: WireSetting, exchanges: ReadonlyMap<string, Exchange>) {
    this.setting = setting
    this.#exchanges = exchanges
  }

  static load(): WireCorpus {
    const read = (file: string): unknown => JSON.parse(readFileSync(join(CORPUS_DIR, file), 'utf8'))
    const files = readdirSync(CORPUS_DIR).filter((file) => file !== 'setting.json')
    const exchanges = files.map((file) => [file.replace(/\.json$/, ''), exchangeSchema.parse(read(file))] as const)
    return new WireCorpus(settingSchema.parse(read('setting.json')), new Map(exchanges))
  }

  save(): void {
    mkdirSync(CORPUS_DIR, { recursive: true })
    const write = (name: string, value: unknown) => writeFileSync(join(CORPUS_DIR, `${name}.json`), `${JSON.stringify(value, null, 2)}\n`)
    for (const [name, exchange] of this.#exchanges) write(name, exchange)
    write('setting', this.setting)
  }

  get names(): string[] {
    return [...this.#exchanges.keys()].sort()
  }
  get(name: string): Exchange {
    const found = this.#exchanges.get(name)
    if (found === undefined) throw new Error(`nothing was recorded as ${name}`)
    return found
  }

  /** The recorded answer as a response. */
  answer(name: string, change: (body: Buffer) => Uint8Array = (body) => body): Response {
    const { status, headers, body } = this.get(name).answer
    const bytes = change(Buffer.from(body, 'base64')) as Uint8Array<ArrayBuffer>
    return new Response(status === 204 ? null : bytes, { status, headers })
  }
}
