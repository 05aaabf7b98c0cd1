// The next step of a person for a state that an agent reports with a reason. Pure. For a reason that is not here, the
// next step is to look at the objects.

interface Place {
  project: string
  service: string
  cluster: string
}

const STEPS: Readonly<Record<string, (place: Place) => string>> = {
  BlockedBy: ({ project, service }) =>
    `No action needed while the dependency is in progress. Otherwise correct the dependency; \`skerry describe service ${service} -p ${project}\` shows its dependencies.`,
  ManualSync: ({ project, service, cluster }) =>
    `\`skerry sync ${service} -p ${project} --cluster ${cluster}\` shows the changes and asks for confirmation.`,
  WaitingForWave: () => 'No action needed while the object is in progress. If it failed, correct it in Git.',
  WaitingForHook: () => 'No action needed: the sync continues when the hook ends.',
  HookFailed: () => 'Read the log of the hook in the cluster, correct it and commit: a new revision runs it again.',
  Held: ({ cluster }) =>
    `No action needed if the hold is intended. Otherwise run the \`skerry-agent unhold\` of the message in ${cluster}.`,
  OutsideWindow: () => 'No action needed: the sync continues when the window opens.',
  ShardBehind: () => 'Check the disk of the server and run `skerry doctor` there; the server retries automatically.',
  RevisionIncomplete: () => 'Upgrade the agent if the message says so. Otherwise no action is needed: the rest arrives soon.',
}

/** Null if there is none of its own. */
export const nextStep = (reason: string, place: Place): string | null =>
  Object.hasOwn(STEPS, reason) ? (STEPS[reason]?.(place) ?? null) : null
