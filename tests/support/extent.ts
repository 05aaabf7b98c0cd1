// How much tests prove: `scripts/check --long` plays longer random runs and has the older Kubernetes; every other run
// proves the same rules on less.
import type { KubernetesMinor } from '../../scripts/local-cluster/binaries.ts'

const isLong = process.env['SKERRY_TEST_EXTENT'] === 'long'

/** The first in a long check, the second in all others. */
export const inLong = <T>(long: T, otherwise: T): T => (isLong ? long : otherwise)

/** The older one is built for a long check only (`scripts/setup --cluster-older`). */
export const KUBERNETES_MINORS: readonly KubernetesMinor[] = inLong(['newest', 'older'], ['newest'])
