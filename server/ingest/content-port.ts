// The port to those who read content of tenants: control names repositories, revisions and what is to be rendered, and gets ids, versions and rows. Nothing of the content itself comes
// through it but the rows of a render.
import type { ServiceId } from '../../shared/model/ids.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import type { ConfigLayer } from '../render/config-merge.ts'
import type { ClusterInputs } from '../render/inputs.ts'
import type { RenderSettings } from '../render/overrides-of.ts'
import type { PipelineOutcome } from '../render/pipeline.ts'
import type { SandboxProgram } from '../render/sandbox.ts'
import type { Source, SourcePick, SourceTree } from '../sources/source.ts'
import type { SourceKey } from '../sources/sources.ts'

/** What is where, by content ids; of Git, charts and artifacts alike. */
export interface ContentIds extends Pick<SourceTree, 'id'> {
  /** Reads those ids ahead that are asked for next; one that cannot be read is told when it is asked for. */
  ahead?(paths: readonly string[]): Promise<void>
}

export interface OpenedContent {
  tree: ContentIds
  /** Where in the tree the service is. */
  root: string
  /** For people (source.ts). */
  version: string
}

export interface ContentSource extends Pick<Source, 'head' | 'fetch' | 'tagOf' | 'has'> {
  open(revision: string, pick: SourcePick): Promise<OpenedContent>
}

export interface ContentSources {
  /** Asks nothing of the other side. */
  open(key: SourceKey): ContentSource
  removeOthers(key: SourceKey): Promise<void>
  removeUnknown(uids: ReadonlySet<string>): Promise<void>
  forget(uid: string): Promise<void>
}

/** Of a service, as it was opened. */
export interface ServiceSource {
  /** By which others name it. */
  name: string | undefined
  /** For messages, where there are several: its name or that of its repository. */
  label: string
  key: SourceKey
  revision: string
  pick: SourcePick
  opened: OpenedContent
  /** Absent: that of the service. */
  render: RenderSpec | undefined
  /** Nothing is rendered of it. */
  filesOnly: boolean
}

export interface RenderRequest {
  id: ServiceId
  namespace: string | undefined
  render: RenderSpec
  sources: readonly ServiceSource[]
  /** Null: for nobody. */
  cluster: ClusterInputs | null
  settings: RenderSettings
  configs: ReadonlyMap<string, ConfigLayer>
}

/** `tools`: versions of the programs that took part; null: it is not there. */
export interface RenderAnswer extends PipelineOutcome {
  tools: Readonly<Record<string, string | null>>
}

export interface Renders {
  /** Renders one service for one cluster; what is wrong with its files or with this server is the answer's result. */
  run(request: RenderRequest): Promise<RenderAnswer>
  /** Of a program; null: it is not there. Throws AppError when it must not run here. */
  version(program: SandboxProgram): Promise<string | null>
}
