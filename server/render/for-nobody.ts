// A render for no cluster finds errors before any cluster exists. An error cannot show whether a cluster would have
// solved it: the message says so. Pure.
import type { Problem } from '../../shared/runtime/error.ts'
import type { InputRead } from './inputs.ts'

/** In every message about what a cluster may bring. */
export const FOR_NO_CLUSTER = 'this is rendered for no cluster'

export const NONE_TO_ASK = `${FOR_NO_CLUSTER}, so there is none to ask`
/** Content that asks for the cluster itself is right, and deserves no warning. */
export const asksForCluster = ({ needsCluster }: Problem): boolean => needsCluster === 'asks'

/** RD10: whether a render that fails for no cluster may succeed for one. */
export const mayNeedCluster = ({ needsCluster }: Problem): boolean => needsCluster !== undefined

/** `leavesOut`: there are overrides for clusters, and none of them counts here. */
export const dependsOnCluster = (looks: readonly InputRead[], leavesOut: boolean): boolean =>
  looks.some(([first]) => first === 'cluster' || (leavesOut && (first === 'config' || first === 'values')))

/** With those words, once. */
export const doubted = (problems: readonly Problem[]): Problem[] =>
  problems.map((problem) =>
    mayNeedCluster(problem) ? problem : { ...problem, message: `${problem.message}${DOUBT}`, needsCluster: 'may' },
  )
const DOUBT = `; ${FOR_NO_CLUSTER}: one may bring what is missing`
