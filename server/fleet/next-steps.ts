// What a person does next about a state that an agent reports by reason. Pure. What is not here is answered by looking at the objects.

interface Place {
  project: string
  service: string
  cluster: string
}

const STEPS: Readonly<Record<string, (place: Place) => string>> = {
  BlockedBy: ({ project, service }) =>
    `Nothing, if the service that it waits for is on its way: it goes on by itself. Else mend that one; \`skerry describe service ${service} -p ${project}\` shows its dependencies.`,
  ManualSync: ({ project, service, cluster }) =>
    `\`skerry sync ${service} -p ${project} --cluster ${cluster}\` shows what it would change there and asks.`,
  WaitingForWave: () =>
    'Nothing, while the object that it waits for is on its way: it goes on by itself. If that one failed, correct it in Git.',
  WaitingForHook: () => 'Nothing yet: it goes on by itself when the hook has ended.',
  HookFailed: () => 'Look at the log of the hook in the cluster, correct it and commit: a new revision runs it again.',
  Held: ({ cluster }) => `Nothing, if it is meant to be held; else run the \`skerry-agent unhold\` of the message, in ${cluster}.`,
  OutsideWindow: () => 'Nothing: it goes on by itself when its window opens.',
  ShardBehind: () => 'Check the disk of the server and run `skerry doctor` there; the server retries by itself.',
  RevisionIncomplete: () => 'Upgrade the agent if the message says so; else nothing: the rest of it is on its way.',
}

/** Null means: there is none of its own. */
export const nextStep = (reason: string, place: Place): string | null =>
  Object.hasOwn(STEPS, reason) ? (STEPS[reason]?.(place) ?? null) : null
