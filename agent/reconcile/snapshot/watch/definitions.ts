// Which CRD defines each custom kind that is watched, written down while the kind is served. When no API serves the
// kind any more, this name tells a deleted CRD, which took its objects along, from an API server that fails to serve
// the kind, and from an aggregated API, whose objects live in another server's storage.
import type { ObjectRef } from '../../../../shared/kube/object.ts'
import { isBuiltInGroup } from '../../../../shared/kube/order.ts'
import type { Logger } from '../../../../shared/runtime/logger.ts'
import { describeError } from '../../../../shared/runtime/loop.ts'
import type { ApiResource, Cluster, GetResult } from '../../../cluster/cluster.ts'
import { objectPart } from '../../../messages/object-messages.ts'
import type { AgentState } from '../../../state/agent-state.ts'
import type { ServedKinds } from './served-kinds.ts'

const CRD_GROUP = 'apiextensions.k8s.io'
const CRD_KIND = 'CustomResourceDefinition'

type Kind = Pick<ObjectRef, 'group' | 'kind'>
const kindKey = ({ group, kind }: Kind): string => `${group}/${kind}`

export interface DefinitionsDeps {
  cluster: Pick<Cluster, 'get'>
  kinds: Pick<ServedKinds, 'find'>
  state: Pick<AgentState, 'definitions' | 'noteDefinition'>
  log: Logger
}

/** The fate of a kind that no API serves. */
export type KindEnd =
  /** Its CRD is gone, and with it every object of the kind. */
  | { kind: 'deleted' }
  /** `why`: the API server's answer about its CRD, or null if the CRD exists. */
  | { kind: 'defined'; crd: string; why: string | null }
  /** Its CRD is unknown: an aggregated API, or one whose CRD was deleted before this agent saw it. */
  | { kind: 'unknown' }

export class Definitions {
  readonly #deps: DefinitionsDeps
  /** Read since this process began. */
  readonly #looked = new Set<string>()

  constructor(deps: DefinitionsDeps) {
    this.#deps = deps
  }

  /** These resources are watched from now on. */
  follow(resources: Iterable<ApiResource>): void {
    for (const resource of resources) {
      const key = kindKey(resource)
      if (isBuiltInGroup(resource.group) || this.#looked.has(key)) continue
      this.#looked.add(key)
      if (!this.#deps.state.definitions().has(key)) void this.#learn(key, `${resource.plural}.${resource.group}`)
    }
  }

  /** IV9: of kinds that no API serves. */
  async endsOf(kinds: Iterable<Kind>): Promise<(kind: Kind) => KindEnd> {
    const ends = new Map<string, KindEnd>()
    for (const kind of kinds) if (!ends.has(kindKey(kind))) ends.set(kindKey(kind), await this.#endOf(kind))
    return (kind) => ends.get(kindKey(kind)) ?? { kind: 'unknown' }
  }

  async #endOf(kind: Kind): Promise<KindEnd> {
    const crd = this.#deps.state.definitions().get(kindKey(kind))
    if (crd === undefined) return { kind: 'unknown' }
    const answer = await this.#read(crd)
    if (answer?.kind === 'absent') return { kind: 'deleted' }
    const why = answer === null ? objectPart('no_definitions') : answer.kind === 'found' ? null : answer.failure.message
    return { kind: 'defined', crd, why }
  }

  async #learn(key: string, crd: string): Promise<void> {
    const { state, log } = this.#deps
    try {
      const answer = await this.#read(crd)
      if (answer?.kind === 'found') state.noteDefinition(key, crd)
      else if (answer?.kind !== 'absent') this.#looked.delete(key)
    } catch (error) {
      // A full disk: the next search records it.
      this.#looked.delete(key)
      log.warn('definition of a custom kind not recorded', { kind: key, error: describeError(error) })
    }
  }

  /** Null if CRDs themselves are not served. */
  async #read(name: string): Promise<GetResult | null> {
    const lookup = this.#deps.kinds.find(CRD_GROUP, 'v1', CRD_KIND)
    if (lookup.kind !== 'served') return null
    return this.#deps.cluster.get(lookup.resource, { group: CRD_GROUP, kind: CRD_KIND, namespace: '', name }, { metadataOnly: true })
  }
}
