// What control and a worker say to each other. Control is trusted by the worker and of the same build (the greeting sees to it): what it says is typed, and not checked again. What a
// worker says is checked field by field: it reads content of tenants.
//
// Version 1 (2026-11): greet, source.*, sources.*, tools.version, patches.check, render; asked by the worker as part of a job: credentials, chart, answer.get, answer.put.
import { z } from 'zod'
import type { ServiceId } from '../../../shared/model/ids.ts'
import type { Labels } from '../../../shared/model/labels.ts'
import type { RenderSpec } from '../../../shared/model/render.ts'
import type { RepositoryPlace } from '../../../shared/model/resources.ts'
import { problemSchema } from '../../../shared/protocol/error.ts'
import type { ExecEntry } from '../../render/exec/list.ts'
import type { PatchLayer } from '../../render/overrides-of.ts'
import type { PatchSet } from '../../render/patch/patches.ts'
import type { HelmLayer } from '../../render/renderer.ts'
import type { SandboxMode } from '../../render/sandbox/runs.ts'
import type { SandboxProgram } from '../../render/sandbox.ts'
import type { SourcePick } from '../../sources/source.ts'
import type { FrameLimits } from './frames.ts'

export const CHANNEL_VERSION = 1

const MIB = 1024 * 1024
/** Of what a worker sends: rows of a render are the largest. */
export const FROM_WORKER: FrameLimits = { headBytes: 1_024, jsonBytes: 2 * MIB, dataBytes: 96 * MIB }
/** Of one render, as lines; more is refused before it is sent. */
export const ROWS_BYTES_MAX = 64 * MIB
export const LOOKS_BYTES_MAX = 16 * MIB
/** Of what control sends: variables, values and patches of one service, and what a program said before. */
export const FROM_CONTROL: FrameLimits = { headBytes: 1_024, jsonBytes: 64 * MIB, dataBytes: 96 * MIB }
/** That a worker may ask for at once, of all its jobs. */
export const ASKED_AT_ONCE_MAX = 256
/** Between signs of life while a worker has jobs. */
export const BEAT_EVERY_MS = 500
/** Paths in one `source.ids`. */
export const PATHS_AT_ONCE_MAX = 1_000

/** First of all; nothing is done before it. */
export interface Greeting {
  version: number
  build: string
  /** Of all that run beside each other it is the only one of that name. */
  name: string
  /** Of all workers; the second one is its own. */
  sourcesDir: string
  renderDir: string
  /** As `--source-addresses` has them. */
  sourceAddresses: string
  /** HTTP_PROXY and its like. */
  proxies: Readonly<Record<string, string>>
  rendering: {
    mode: SandboxMode
    programs: {
      helm?: string | undefined
      helm3?: string | undefined
      kustomize?: string | undefined
      renderers: ReadonlyArray<readonly [string, ExecEntry]>
      searchPath: readonly string[]
    }
  }
  /** How many programs run at once. */
  slots: number
}
export const greetedSchema = z.strictObject({ build: z.string() })

/** Of a Repository resource. */
export interface SourceKey {
  uid: string
  project: string
  place: RepositoryPlace
}

/** What a service takes of a repository at a revision; all that is needed to open it. */
export interface SourceRef {
  key: SourceKey
  revision: string
  pick: SourcePick
}

export interface Layer {
  values: Readonly<Record<string, unknown>>
  /** Names whose value is, or holds, a secret. */
  secrets: readonly string[]
}

export interface RenderOrder {
  id: ServiceId
  namespace: string | null
  render: RenderSpec
  sources: ReadonlyArray<{ name?: string; label: string; at: SourceRef; render?: RenderSpec; filesOnly: boolean }>
  cluster: { name: string; labels: Labels; facts: { kubernetesVersion: string; apiVersions: Readonly<Record<string, true>> } } | null
  settings: { config: Layer; helmValues: readonly HelmLayer[]; patches: readonly PatchLayer[]; leavesOut: boolean }
  configs: ReadonlyArray<readonly [string, Layer]>
}

/** What control says, by method. */
export interface Orders {
  greet: Greeting
  'source.head': SourceKey
  'source.fetch': SourceKey
  'source.has': { key: SourceKey; revision: string }
  'source.open': SourceRef
  'source.ids': { at: SourceRef; paths: readonly string[] }
  'sources.removeOthers': SourceKey
  'sources.forget': { uid: string }
  'tools.version': { program: SandboxProgram }
  'patches.check': { project: string; sets: readonly PatchSet[] }
  render: RenderOrder
}
export type Method = keyof Orders

const text = (max: number) => z.string().max(max)
const looked = z.strictObject({ revision: text(200), tag: text(300).nullable() })
export const PROBLEMS_MAX = 2_000
const problems = z.array(problemSchema).max(PROBLEMS_MAX)
const places = {
  looksBytes: z.int().nonnegative(),
  secret: z.boolean(),
  late: z.boolean(),
  tools: z.record(text(300), text(300).nullable()),
}

/** What a worker answers, by method. */
export const ANSWERS = {
  greet: greetedSchema,
  'source.head': looked,
  'source.fetch': looked,
  'source.has': z.strictObject({ has: z.boolean() }),
  'source.open': z.strictObject({ root: text(2_000), version: text(300) }),
  /** Content ids; null: there is nothing; false: it cannot be read. */
  'source.ids': z.strictObject({ ids: z.array(z.union([text(300), z.null(), z.literal(false)])).max(PATHS_AT_ONCE_MAX) }),
  'sources.removeOthers': z.undefined(),
  'sources.forget': z.undefined(),
  'tools.version': z.strictObject({ version: text(300).nullable() }),
  'patches.check': z.strictObject({ problems }),
  /** With the looks, and behind them the rows, as lines of its data (render-lines.ts). */
  render: z.discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('rendered'),
      digest: z.string().regex(/^[0-9a-f]{32}$/),
      hooks: z.int().nonnegative(),
      warnings: problems,
      ...places,
    }),
    z.strictObject({
      kind: z.literal('failed'),
      code: z.enum(['no_manifests', 'render_failed']),
      message: text(20_000),
      problems,
      ...places,
    }),
    /** What is wrong with the server, or with reading a source: as text of wire-error.ts. */
    z.strictObject({ kind: z.literal('error'), error: z.string(), ...places }),
  ]),
} satisfies Record<Method, z.ZodType>

/** What a worker asks for as part of a job. */
export const ASKED = {
  /** For the repository at that URL, or the token server that it names. */
  credentials: z.strictObject({ secretRef: text(300), url: text(2_048), tokenServer: text(300).optional() }),
  /** A chart that another one depends on: which Repository of the project has it. */
  chart: z.strictObject({ repository: text(4_096), name: text(300), version: text(300) }),
  /** What a program said before, by all that it got. */
  'answer.get': z.strictObject({ parts: z.string().regex(/^[0-9a-f]{64}$/) }),
  'answer.put': z.strictObject({ parts: z.string().regex(/^[0-9a-f]{64}$/), secret: z.boolean() }),
} satisfies Record<string, z.ZodType>
export interface AskedAnswers {
  credentials: Readonly<Record<string, string>>
  chart: SourceKey
  'answer.get': { found: boolean }
  'answer.put': undefined
}
