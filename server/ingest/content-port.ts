// The port to the workers, which read content of tenants. Control names repositories, revisions and renders, and gets
// ids, versions and rows. No other content comes through it.

import type { RenderSpec } from '../../shared/model/render.ts'
import type { ExplainedValue } from '../../shared/model/render-views.ts'
import type { AppError } from '../../shared/runtime/error.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { ConfigLayer } from '../render/config-merge.ts'
import type { ClusterInputs } from '../render/inputs.ts'
import type { RemoteBase } from '../render/kustomize/remote.ts'
import type { ManifestOrigin } from '../render/manifests.ts'
import type { RenderSettings } from '../render/overrides-of.ts'
import type { PipelineOutcome } from '../render/pipeline.ts'
import type { SandboxProgram } from '../render/sandbox.ts'
import type { Source, SourcePick, SourceTree } from '../sources/source.ts'
import type { SourceKey } from '../sources/sources.ts'

/** Content ids of paths, for Git, charts and artifacts alike. */
export interface ContentIds extends Pick<SourceTree, 'id'> {
  /** Reads ids that are asked for next. An id that cannot be read fails when it is asked for. */
  ahead?(paths: readonly string[]): Promise<void>
}

export interface OpenedContent {
  tree: ContentIds
  /** Path of the service in the tree. */
  root: string
  /** For messages (source.ts). */
  version: string
}

export interface ContentSource extends Pick<Source, 'head' | 'fetch' | 'tagOf' | 'has' | 'noteOf'> {
  open(revision: string, pick: SourcePick): Promise<OpenedContent>
  /** SO55: it was verified since the start, and no commit of that ref was before. Absent means that nothing is
   *  verified. */
  isFirstVerified?(revision: string): boolean
}

export interface ContentSources {
  /** Makes no request. */
  open(key: SourceKey): ContentSource
  /** Keeps the files of an upload, the base64 text of an archive. Returns their revision. `forget` removes them. */
  put(key: SourceKey, archive: string): Promise<string>
  removeOthers(key: SourceKey): Promise<void>
  /** Spares the folders of remote bases. */
  removeUnknown(uids: ReadonlySet<string>): Promise<void>
  /** Removes the folders of all remote bases but those of these uids. Absent means that there are none. */
  removeUnusedBases?(uids: ReadonlySet<string>): Promise<void>
  forget(uid: string): Promise<void>
}

/** A source of a service, opened at a revision. */
export interface ServiceSource {
  /** The name in `sources`, by which other sources refer to it. */
  name: string | undefined
  /** For messages about one of several sources: its name, or that of its repository. */
  label: string
  key: SourceKey
  revision: string
  pick: SourcePick
  opened: OpenedContent
  /** Undefined means that the render spec of the service counts. */
  render: RenderSpec | undefined
  /** Other sources may refer to its files; it is not rendered itself. */
  filesOnly: boolean
}

/** The revision of a remote base in one reconciliation of a service. */
export type BaseState = { kind: 'ready'; key: SourceKey; revision: string } | { kind: 'pending' } | { kind: 'failed'; error: AppError }

/** `lost`: a revision that was answered before, and is not on the disk any more. */
export type StateOfBase = (base: RemoteBase, lost: string | null) => Promise<BaseState>

export interface RenderRequest {
  id: ServiceId
  namespace: string | undefined
  render: RenderSpec
  sources: readonly ServiceSource[]
  /** Null means a render for no cluster. */
  cluster: ClusterInputs | null
  settings: RenderSettings
  configs: ReadonlyMap<string, ConfigLayer>
  /** Absent means that there are no remote bases. */
  base?: StateOfBase | undefined
}

/** `tools` has the versions of the programs that took part. Null means that the program is missing. */
export interface RenderAnswer extends PipelineOutcome {
  tools: Readonly<Record<string, string | null>>
}

/** `origin` null: the render has no such object. `failed`: why it does not render. */
export interface OriginAnswer {
  origin: ManifestOrigin | null
  failed: string | null
}

export interface Renders {
  /** Renders one service for one cluster. Errors of its files and of this server are the result. */
  run(request: RenderRequest): Promise<RenderAnswer>
  /** The Helm values of its charts, each with its level (CG9). Absent means that it cannot tell. */
  helmValues?(request: RenderRequest): Promise<ExplainedValue[]>
  /** The file that the object of this row is made of (RH8). Absent: it cannot tell. */
  originOf?(request: RenderRequest, row: string): Promise<OriginAnswer>
  /** Version of a program; null when it is missing. Throws AppError when it must not run here. */
  version(program: SandboxProgram): Promise<string | null>
}
