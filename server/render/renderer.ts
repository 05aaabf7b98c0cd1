// The port that helm, kustomize, Liquid, TypeScript and exec renderers fill: one source's files and inputs → YAML or
// JSON texts, or everything that is wrong with them. What comes after (reading the texts, patches, labels, namespaces,
// rows) is the same for all.
import type { K8sObject } from '../../shared/kube/object.ts'
import type { HelmValues, RenderSpec } from '../../shared/model/render.ts'
import type { AppError, Problem } from '../../shared/runtime/error.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { OpenSops } from '../../shared/sops/open.ts'
import type { SopsParcel } from '../../shared/sops/parcel.ts'
import type { SourceTree } from '../sources/source.ts'
import type { InputRead, RenderInputs } from './inputs.ts'
import type { RemoteBase } from './kustomize/remote.ts'
import type { Meter } from './liquid/limits.ts'
import type { Sandbox } from './sandbox.ts'

/** Every look into its tree is recorded. */
export interface JobSource {
  tree: SourceTree
  /** The folder in it that is rendered; '' is its root. */
  root: string
}

export interface HelmLayer {
  /** For messages: `overrides[2]`. */
  from: string
  values: HelmValues
  /** Below its values, above all of the levels before it. */
  valuesFiles?: readonly string[]
}

/** `recipients`: of the keys of this server. `wrong`: the file is not as sops encrypted it. */
export type OpenedSops =
  | { kind: 'open'; sops: OpenSops }
  | { kind: 'closed'; recipients: readonly string[] }
  | { kind: 'wrong'; why: string }

/** `pending`: it is being fetched, and the render is done again afterwards. The tree of a file holds it as SINGLE_FILE.
 */
export type OpenedBase = { kind: 'ready'; tree: SourceTree; revision: string } | { kind: 'pending' } | { kind: 'failed'; error: AppError }

export interface RenderJob {
  id: ServiceId
  spec: RenderSpec
  namespace: string | undefined
  source: JobSource
  /** By name, for `$NAME/path`. */
  named: ReadonlyMap<string, JobSource>
  /** Every look is recorded: take no more of it than is needed, and never the whole. */
  inputs: RenderInputs
  /** The meter that all templates of the source share. Absent means that each template has its own. */
  meter?: Meter | undefined
  /**
   * For reads in another process, which cannot be seen here: every place of `inputs` that it read, also missing ones.
   */
  recordInput(path: InputRead): void
  /** The same without recording, only to be handed to such a process. */
  plainInputs: RenderInputs
  /** Helm values from the lowest to the highest, after `helm.values` of the spec: those of overrides, then those of the
   *  cluster. Texts in them, and names of files, are templates still. */
  values: readonly HelmLayer[]
  /**
   * The value of a key of a Config of the project, for `helm.valuesFrom`: of `data` unchanged, of a secret as its text;
   * recorded like any other read. Undefined means that there is none. `isMapping`: it holds Helm values, as a mapping
   * or as text.
   */
  configValue(name: string, key: string, isMapping?: boolean): unknown
  /** SP7: opens a SOPS file that a program needs in clear, where the server has a key for it; recorded. Absent means
   *  none opens. */
  openSops?: (parcel: SopsParcel) => Promise<OpenedSops>
  /** How often a secret was read so far. */
  secretReads?: () => number
  /** Files of one version of a chart that another depends on, by path from that chart's folder. `repository`: as its
   *  Chart.lock has it (http, https or oci), of a Repository of the same project; `version`: exactly. Throws
   *  `source_refused` and its like, with what to do. Absent means no charts but those of the tree. */
  charts?: (repository: string, name: string, version: string) => Promise<ReadonlyMap<string, Uint8Array>>
  /** A remote base at the revision of this render, recorded as an input. Absent means that nothing is fetched here. */
  bases?: (base: RemoteBase) => Promise<OpenedBase>
  /** The result shall say of which file each object is made, at the cost of time. */
  wantsFiles?: boolean
  sandbox: Sandbox
  /**
   * The output of a program for exactly these parts, which identify its whole input; runs the program if the output is
   * not known. Bounded, and shared by all services.
   */
  once(parts: readonly string[], run: () => Promise<Uint8Array>): Promise<Uint8Array>
  signal: AbortSignal
}

export type RendererResult =
  /** `files`: name for messages (`templates/deployment.yaml`) → YAML stream or JSON. Names end with .yaml, .yml or
   *  .json. */
  | {
      kind: 'rendered'
      files: ReadonlyMap<string, Uint8Array>
      warnings: Problem[]
      /** Files that a program read and wrote anew, where it matters how they were (SOPS). */
      originals?: ReadonlyMap<string, Uint8Array>
      /**
       * File of the source that an object is made of. Null means that it is not known. Without this function, the names
       * in `files` are those of the files.
       */
      fileOf?: (rendered: string, object: K8sObject) => string | null
    }
  /**
   * `ofInputs`: those that other inputs may solve, such as a refusal by a running template. `files`: those that
   * rendered nevertheless, so that their errors are reported together.
   */
  | { kind: 'failed'; problems: Problem[]; ofInputs?: readonly Problem[]; files?: ReadonlyMap<string, Uint8Array> }

/** A failure of which every part may be right with other inputs. */
export const allOfInputs = (problems: Problem[]): RendererResult => ({ kind: 'failed', problems, ofInputs: problems })

/** Expected failures are values; throws AppError only for what is wrong with this server (`renderer_missing`,
 *  `sandbox_unavailable`). */
export type Renderer = (job: RenderJob) => Promise<RendererResult>
