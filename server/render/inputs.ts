// The inputs of templates: the cluster, the variables, the service, and the source of its files. The same names in
// Liquid, in TypeScript and for exec renderers.
import type { Labels } from '../../shared/model/labels.ts'

/** Reported by the agent; from complete discovery only (FA1). */
export interface ClusterFacts {
  /** `v1.36.3`; '' while it is not known. */
  kubernetesVersion: string
  /**
   * `v1`, `apps/v1`, and `apps/v1/Deployment`: the served APIs. As names, so that reading one of them is a dependency
   * on that one only.
   */
  apiVersions: Readonly<Record<string, true>>
}

export interface ClusterInputs {
  name: string
  labels: Labels
  facts: ClusterFacts
}

export interface RenderInputs {
  /** Null for no cluster in particular. */
  cluster: ClusterInputs | null
  config: Readonly<Record<string, unknown>>
  service: { name: string; project: string; namespace: string | null }
  /** The rendered source: its commit, or version and digest. */
  source: { version: string }
}

/**
 * A dependency: `['cluster','labels','region']`. Listing the names of an object, or taking it whole, depends on all of
 * it: the path ends there.
 */
export type InputRead = readonly string[]

/** As the last name of a path: what there is was not looked into, only whether it is there, and whether it is an
 *  object, a list or something else. */
export const KIND_ONLY = '\u0000kind'

/** A read file of a source: content ids, so that equal ids are equal bytes. Null means that it did not exist. */
export interface FileRead {
  /** Index in the service's sources. */
  source: number
  path: string
  id: string | null
}

/** A place where a render looked: of a file, or of an input. */
export type Dependency = Pick<FileRead, 'source' | 'path'> | InputRead

/** All that a render depends on besides the service's own render options and the tools: with equal values at these
 *  places it gives the same again. */
export interface Reads {
  /**
   * In the order of the reads, without those that earlier ones imply: renders with equal values so far read the same
   * next.
   */
  dependencies: readonly Dependency[]
  /** The same sorted, and only what no other one tells. */
  files: readonly FileRead[]
  inputs: readonly InputRead[]
  /** A value of a Config's secrets was among them: whatever is kept of the render is encrypted. */
  secret: boolean
}
