// Why the server removes a service from clusters, and why a removal or a release waits for a person. These texts become
// parts of confirmations, statuses and events.
import { objectCount, type Table, textsOf } from '../../shared/runtime/messages.ts'

interface Leaving {
  /** The text of `deleting` or `leaving`. */
  what: string
}
interface Of {
  leaving: number
  holders: number
}
const ofClusters = ({ leaving, holders }: Of): string => `${leaving} of ${holders} ${holders === 1 ? 'cluster' : 'clusters'}`

interface Release {
  tools: string
  /** Clusters with another render, of all that have the service. */
  clusters: number
  holders: number
  objects: number
  /** The number of named objects. */
  named: number
  isSpecChanged: boolean
}
function releaseText({ tools, clusters, holders, objects, named, isSpecChanged }: Release, renders: string): string {
  const first = named < objects ? ` (the first ${named} are named)` : ''
  const alsoSpec = isSpecChanged ? ', and its spec was changed as well' : ''
  return `${tools}: ${renders} to something else in ${clusters} of ${holders} clusters, ${objectCount(objects)} in all${first}${alsoSpec}; nothing of the service is published meanwhile, new commits wait, too`
}

export const QUESTIONS = {
  // Causes of a removal.
  service_deleted: { text: 'the service was deleted' },
  left_targets: { text: 'the cluster left the targets of the service' },
  confirmed: { text: ({ why }: { why: string }) => `${why}; confirmed` },

  // Guard: a removal that waits for a person.
  deleting: { text: (of: Of) => `deleting it removes it from ${ofClusters(of)}` },
  leaving: { text: (of: Of) => `it would be removed from ${ofClusters(of)}` },
  leaving_more: {
    text: (of: Of & { ordered: number }) =>
      `it would be removed from ${ofClusters(of)}, in addition to ${of.ordered} from which it is being removed`,
  },
  protected: { text: ({ what }: Leaving) => `the service is protected, and ${what}` },
  no_destination: {
    text: ({ what, count }: Leaving & { count: number }) => `its project has no destination for ${count} of its clusters, and ${what}`,
  },
  too_many: {
    text: ({ what, most, percent }: Leaving & { most: number; percent: number }) =>
      `${what}: more than ${most} clusters and more than ${percent} % of them`,
  },
  no_target_left: { text: ({ what }: Leaving) => `the changed targets no longer match any cluster, and ${what}` },
  // DE4: follows the reason of a removal.
  dependents: {
    text: ({ services }: { services: string }) => `; its dependents stay unchanged and start no new revision without it: ${services}`,
  },

  // RL3: a new version of a render tool.
  release: { text: (release: Release) => releaseText(release, 'it renders') },
  release_of: { text: (release: Release & { commit: string }) => releaseText(release, `commit ${release.commit} renders`) },

  sync: { text: 'a person asked for it' },
} satisfies Table

export const questionText = textsOf(QUESTIONS)
