// The messages between control and a worker. The worker trusts control, which the greeting proves to be of the same
// build: orders are typed and not checked again. Control checks each field that a worker sends, because a worker reads
// content of tenants.
//
// Version 1 (2026-11): greet, source.*, sources.*, tools.version, patches.check, texts.render, render. A worker asks,
// as part of a job: credentials, chart, base, sops.key, verified, answer.get, answer.put.

import { z } from 'zod'
import { commitNoteSchema, type Watermark } from '../../../shared/model/commits.ts'
import type { Labels } from '../../../shared/model/labels.ts'
import type { RenderSpec } from '../../../shared/model/render.ts'
import { problemSchema } from '../../../shared/runtime/error.ts'
import type { ServiceId } from '../../../shared/runtime/ids.ts'
import { SOPS_RECIPIENTS_MAX } from '../../../shared/sops/parcel.ts'
import type { ExecEntry } from '../../render/exec/list.ts'
import { remoteBaseSchema } from '../../render/kustomize/remote.ts'
import type { PatchLayer } from '../../render/overrides-of.ts'
import type { PatchSet } from '../../render/patch/patches.ts'
import type { RenderBounds } from '../../render/render-bounds.ts'
import type { HelmLayer } from '../../render/renderer.ts'
import type { SandboxMode } from '../../render/sandbox/runs.ts'
import type { SandboxProgram } from '../../render/sandbox.ts'
import type { SourcePick, SourcePlace } from '../../sources/source.ts'
import type { FrameLimits } from './frames.ts'

export const CHANNEL_VERSION = 1

const MIB = 1024 * 1024
/** Limits of what a worker sends. Rows of a render are the largest data. */
export const FROM_WORKER: FrameLimits = { headBytes: 1_024, jsonBytes: 4 * MIB, dataBytes: 96 * MIB }
/** Rows of one render, as lines. The worker refuses more. */
export const ROWS_BYTES_MAX = 64 * MIB
export const LOOKS_BYTES_MAX = 16 * MIB
/** Limits of what control sends: variables, values and patches of one service, and earlier answers of programs. */
export const FROM_CONTROL: FrameLimits = { headBytes: 1_024, jsonBytes: 64 * MIB, dataBytes: 96 * MIB }
/** Most open questions of a worker, for all its jobs. */
export const ASKED_AT_ONCE_MAX = 256
/** Interval of signs of life while a worker has jobs. */
export const BEAT_EVERY_MS = 500
/** Most paths in one `source.ids`. */
export const PATHS_AT_ONCE_MAX = 1_000

/** The first message to a worker. */
export interface Greeting {
  version: number
  build: string
  /** Unique among the workers that run at the same time. */
  name: string
  /** All workers share `sourcesDir`; each has its own `renderDir`. */
  sourcesDir: string
  renderDir: string
  /** The value of `--source-addresses`. */
  sourceAddresses: string
  /** HTTP_PROXY and similar variables. */
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
  /** Most programs that run at the same time. */
  slots: number
}
export const greetedSchema = z.strictObject({ build: z.string() })

/** A Repository resource, or a remote base. */
export interface SourceKey {
  uid: string
  project: string
  place: SourcePlace
}

/** Everything that is needed to open a source of a service at a revision. */
export interface SourceRef {
  key: SourceKey
  revision: string
  pick: SourcePick
}

export interface Layer {
  values: Readonly<Record<string, unknown>>
  /** Names whose value is or holds a secret. */
  secrets: readonly string[]
}

export interface RenderOrder {
  id: ServiceId
  namespace: string | null
  render: RenderSpec
  sources: ReadonlyArray<{ name?: string; label: string; at: SourceRef; render?: RenderSpec; filesOnly: boolean }>
  cluster: { name: string; labels: Labels; facts: { kubernetesVersion: string; apiVersions: Readonly<Record<string, true>> } } | null
  settings: { config: Layer; helmValues: readonly HelmLayer[]; patches: readonly PatchLayer[]; leavesOut: boolean; bounds?: RenderBounds }
  configs: ReadonlyArray<readonly [string, Layer]>
  /** Keys of this service, base64url. Absent means that rows stay in clear. */
  seal?: { id: string; mac: string; box: string }
  /** Key of the marks that stand for secrets in texts for people, hex. */
  mark: string
  /** It is rendered with marks in place of all secrets, for people to see. `compare`: marks of proposed content (DF3).
   */
  forPeople: 'view' | 'compare' | null
}

/** Orders of control, by method. */
export interface Orders {
  greet: Greeting
  'source.head': SourceKey
  'source.fetch': SourceKey
  'source.has': { key: SourceKey; revision: string }
  'source.open': SourceRef
  'source.note': { key: SourceKey; revision: string }
  /** Base64 of an archive. */
  'source.put': { key: SourceKey; archive: string }
  'source.ids': { at: SourceRef; paths: readonly string[] }
  'sources.removeOthers': SourceKey
  'sources.forget': { uid: string }
  'tools.version': { program: SandboxProgram }
  'patches.check': { project: string; sets: readonly PatchSet[] }
  'texts.render': { project: string; templates: Readonly<Record<string, string>>; message: Readonly<Record<string, unknown>> }
  'helm.values': RenderOrder
  /** `row`: of the object in question. */
  'object.origin': { render: RenderOrder; row: string }
  render: RenderOrder
}
export type Method = keyof Orders

const text = (max: number) => z.string().max(max)
const looked = z.strictObject({ revision: text(200), tag: text(300).nullable() })
/** Problems or warnings of one answer, and characters of their texts. */
export const PROBLEMS_MAX = 200
export const PROBLEM_TEXT_MAX = 1_000
/** Values of charts that are explained together. */
export const EXPLAINED_MAX = 10_000
/** Characters of the message of a failed render. */
export const MESSAGE_MAX = 20_000
/** Characters of one rendered text of a notification. */
export const TEXTS_MAX = 20_000
const problems = z.array(problemSchema.extend({ path: text(PROBLEM_TEXT_MAX), message: text(PROBLEM_TEXT_MAX) })).max(PROBLEMS_MAX)
const places = {
  dependenciesBytes: z.int().nonnegative(),
  secret: z.boolean(),
  late: z.boolean(),
  tools: z.record(text(300), text(300).nullable()),
}

/** Answers of a worker, by method. */
export const ANSWERS = {
  greet: greetedSchema,
  'source.head': looked,
  'source.fetch': looked,
  'source.has': z.strictObject({ has: z.boolean() }),
  'source.open': z.strictObject({ root: text(2_000), version: text(300) }),
  'source.note': z.strictObject({ note: commitNoteSchema.nullable() }),
  'source.put': z.strictObject({ revision: z.string().regex(/^[0-9a-f]{64}$/) }),
  /** Content ids. Null means that nothing is at the path, false that it cannot be read. */
  'source.ids': z.strictObject({ ids: z.array(z.union([text(300), z.null(), z.literal(false)])).max(PATHS_AT_ONCE_MAX) }),
  'sources.removeOthers': z.undefined(),
  'sources.forget': z.undefined(),
  'tools.version': z.strictObject({ version: text(300).nullable() }),
  'patches.check': z.strictObject({ problems }),
  'texts.render': z.strictObject({ texts: z.record(text(64), text(TEXTS_MAX)), problems }),
  /** The data is the JSON of a list of explained values. */
  'helm.values': z.strictObject({}),
  /** `origin` null: the render has no such object. `failed`: why it does not render. */
  'object.origin': z.strictObject({
    origin: z.strictObject({ source: text(300), file: text(PROBLEM_TEXT_MAX).nullable(), line: z.int().positive().nullable() }).nullable(),
    failed: text(MESSAGE_MAX).nullable(),
  }),
  /** The data has first the recorded dependencies, then the rows, as lines (render-lines.ts). */
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
      message: text(MESSAGE_MAX),
      problems,
      ...places,
    }),
    /** An error of the server or of reading a source, in the form of wire-error.ts. */
    z.strictObject({ kind: z.literal('error'), error: z.string(), ...places }),
  ]),
} satisfies Record<Method, z.ZodType>

const commitId = z.string().regex(/^([0-9a-f]{40}|[0-9a-f]{64})$/)

/** Questions of a worker as part of a job. */
export const ASKED = {
  /** For the repository at that URL, or the token server that it names. */
  credentials: z.strictObject({ secretRef: text(300), url: text(2_048), tokenServer: text(300).optional() }),
  /** Which Repository of the project has a chart that another chart depends on. */
  chart: z.strictObject({ repository: text(4_096), name: text(300), version: text(300) }),
  /** At which revision a remote base is read. `lost`: a revision that was answered before and is not on the disk any
   *  more. */
  base: z.strictObject({ base: remoteBaseSchema, lost: text(200).nullable() }),
  /** The data key of a SOPS file, whose recipients have it as an age file each. */
  'sops.key': z.strictObject({ age: z.array(z.tuple([text(4_096), text(16_384)])).max(SOPS_RECIPIENTS_MAX) }),
  /** A commit with a valid signature is the newest of its ref; is there a newer one? */
  verified: z.strictObject({ commit: commitId, atMs: z.int().nonnegative(), parents: z.array(commitId).max(100) }),
  /** The earlier answer of a program, by a digest of all its input. */
  'answer.get': z.strictObject({ parts: z.string().regex(/^[0-9a-f]{64}$/) }),
  'answer.put': z.strictObject({ parts: z.string().regex(/^[0-9a-f]{64}$/), secret: z.boolean() }),
} satisfies Record<string, z.ZodType>
/** `error` has the form of wire-error.ts. */
export type BaseAnswer = { kind: 'ready'; key: SourceKey; revision: string } | { kind: 'pending' } | { kind: 'failed'; error: string }
export interface AskedAnswers {
  credentials: Readonly<Record<string, string>>
  chart: SourceKey
  base: BaseAnswer
  /** Base64. Null means that no key of the server opens it. `recipients`: of those keys. */
  'sops.key': { key: string | null; recipients: string[] }
  verified: { newer: Watermark | null }
  'answer.get': { found: boolean }
  'answer.put': undefined
}
