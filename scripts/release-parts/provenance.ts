// The provenance of a release: an in-toto statement of the type SLSA provenance 1.0. Pure.

export interface BuiltFile {
  name: string
  sha256: string
}

export interface BuildFacts {
  version: string
  commit: string
  /** URL of the source, without credentials; null if it has none. */
  repository: string | null
  seconds: number
  /** Inputs besides the commit: Bun, cr-sqlite. */
  inputs: ReadonlyArray<{ name: string; sha256: string }>
  /** The machine or service that ran the build, as an URI. */
  builder: string
}

const BUILD_TYPE = 'https://skerry.dev/build/release/v1'

export const provenanceOf = (files: readonly BuiltFile[], facts: BuildFacts): object => ({
  _type: 'https://in-toto.io/Statement/v1',
  subject: files.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
  predicateType: 'https://slsa.dev/provenance/v1',
  predicate: {
    buildDefinition: {
      buildType: BUILD_TYPE,
      externalParameters: { version: facts.version, entryPoint: 'scripts/release' },
      internalParameters: { SOURCE_DATE_EPOCH: facts.seconds },
      resolvedDependencies: [
        {
          uri: `git+${facts.repository ?? 'https://skerry.dev/skerry'}@${facts.commit}`,
          digest: { gitCommit: facts.commit.replace(/-dirty$/, '') },
        },
        ...facts.inputs.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
      ],
    },
    runDetails: {
      builder: { id: facts.builder },
      // The time of the commit, because the same commit makes the same statement.
      metadata: { finishedOn: new Date(facts.seconds * 1000).toISOString() },
    },
  },
})
