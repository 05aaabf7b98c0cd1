// The verbs of `skerry` by topic, and where their options and actions are. Only the verb that was typed is loaded: all
// of them take 80 ms.
import type { Command } from '@commander-js/extra-typings'
import type { Context } from './context.ts'
import type { LocalCommands, PreviewCommands } from './local-commands.ts'

export type AddCommands = (program: Command, context: Context) => void

/** Functions, because they load much. */
export interface CommandParts {
  preview(): Promise<PreviewCommands>
  local(): Promise<LocalCommands>
}

interface VerbGroup {
  /** Title in `--help`. */
  topic: string
  /** Description of each verb that `load` adds. */
  verbs: Readonly<Record<string, string>>
  /** Works on the data folder of a server: absent in the build for people's machines. */
  ofServer?: true
  load(parts: CommandParts): Promise<AddCommands>
}

export const VERB_GROUPS: readonly VerbGroup[] = [
  {
    topic: 'Read the fleet',
    verbs: {
      get: 'list resources, or show one resource',
      describe: 'show details of a cluster, service, repository, config, health rule or confirmation',
      history: 'list revisions of a service, or with --cluster its status changes there; newest first',
      events: 'list events, newest last',
      count: 'count placements, objects or clusters',
      wait: 'wait until services, clusters or repositories are healthy, synced, ready or deleted',
    },
    load: async () => (await import('./commands/read.ts')).addReadCommands,
  },
  {
    topic: 'Read the fleet',
    verbs: { why: 'explain why a service or an object is not synced and healthy: likely causes, evidence, next step' },
    load: async () => (await import('./commands/why.ts')).addWhyCommand,
  },
  {
    topic: 'Read the fleet',
    verbs: { query: 'answer a read-only SQL query over views of the fleet' },
    load: async () => (await import('./commands/query.ts')).addQueryCommands,
  },
  {
    topic: 'Read the fleet',
    verbs: { trace: 'show which service, revision and commit an object of a cluster comes from' },
    load: async () => (await import('./trace/command.ts')).addTraceCommand,
  },
  {
    topic: 'Ask clusters',
    verbs: {
      logs: 'print logs of Pods, also while they grow, through the agent of the cluster',
      tree: 'show the children of a live object down to Pods, each with its health and reason',
      restart: 'restart the Pods of a deployment, statefulset or daemonset',
    },
    load: async () => (await import('./ask/ask-commands.ts')).addAskCommands,
  },
  {
    topic: 'Change the fleet',
    verbs: {
      apply: 'create or update the resources in files, such as services, repositories and role bindings; all or nothing',
      delete: 'delete a repository, config, health rule, service, cluster or join token, after confirmation',
      confirm: 'list pending confirmations with the exact names, or confirm one by its id',
      refuse: 'keep the objects that a confirmation asks to delete; it can still be confirmed',
      sync: 'show the changes of a waiting revision, object by object, and approve it (for services with sync.mode manual)',
    },
    load: async () => (await import('./commands/change.ts')).addChangeCommands,
  },
  {
    topic: 'Change the fleet',
    verbs: {
      suspend: 'suspend services: agents apply, correct, prune and remove nothing until they are resumed',
      resume: 'resume suspended services; pending changes are applied',
      refresh: 'read a repository now instead of at its next poll, and wait for the result',
    },
    load: async () => (await import('./suspend-commands.ts')).addSuspendCommands,
  },
  {
    topic: 'Preview manifests',
    verbs: {
      diff: 'show what a folder, a branch or a changed Service would change in clusters, before anything is committed or applied',
      render: 'render a service on the server, or with -f on this machine; changes nothing',
      'health-check': 'evaluate the health of Kubernetes objects in files as an agent does, and name the deciding rule',
    },
    load: async ({ preview }) => {
      const [{ addDiffCommand, addRenderCommands }, commands] = await Promise.all([import('./commands/render.ts'), preview()])
      return (program, context) => {
        addDiffCommand(program, context, commands.pack)
        addRenderCommands(program, context, commands.render)
      }
    },
  },
  {
    topic: 'Access',
    verbs: {
      login: 'sign in through an identity provider; the login is saved in a context and renewed automatically',
      logout: 'sign out: end the session on the server and delete the saved login',
      whoami: 'show the caller as the server identifies it',
      session: 'manage sessions of people and pipelines',
    },
    load: async () => (await import('./sign-in/sign-in-commands.ts')).addSignInCommands,
  },
  {
    topic: 'Access',
    verbs: {
      token: 'manage API tokens of people and programs',
      'join-token': 'manage tokens with which new clusters join',
    },
    load: async () => (await import('./token-commands.ts')).addTokenCommands,
  },
  {
    topic: 'Change the fleet',
    verbs: { notify: 'send a test message to a notification sink, or send a dead notification again' },
    load: async () => (await import('./notify/notify-commands.ts')).addNotifyCommands,
  },
  {
    topic: 'Access',
    verbs: { cluster: 'print the command that installs the agent of a new cluster, or give agents another key' },
    load: async () => (await import('./install/join-command.ts')).addClusterCommands,
  },
  {
    topic: 'Access',
    verbs: { dashboard: 'print a link that opens the dashboard once, signed in; valid for ten minutes' },
    load: async () => (await import('./sign-in/dashboard-command.ts')).addDashboardCommand,
  },
  {
    topic: 'Access',
    verbs: { audit: 'list, verify and export the audit log' },
    load: async () => (await import('./audit-commands.ts')).addAuditCommands,
  },
  {
    topic: 'Access',
    verbs: { auth: 'check the rights of a caller, and the role bindings that grant them' },
    load: async () => (await import('./rights/rights-commands.ts')).addAuthCommands,
  },
  {
    topic: 'Client settings',
    verbs: { config: 'manage contexts: named servers with their credentials' },
    load: async () => (await import('./contexts/context-commands.ts')).addConfigCommands,
  },
  {
    topic: 'Client settings',
    verbs: {
      explain: 'describe the fields of a kind or of a field: type, default, meaning; needs no server',
      completion: 'print the completion script of a shell: bash, zsh or fish',
      version: 'show the version of this program, and of the server if a token is given',
    },
    load: async () => (await import('./commands/own.ts')).addOwnCommands,
  },
  {
    topic: 'Run and maintain a server',
    verbs: {
      server: 'run the server',
      dev: 'run a server with temporary data to look at, with --demo-data over a simulated fleet',
      doctor: 'check the data folder of a server (running or not) and report problems with remedies; changes nothing',
      'admin-token': 'create a short-lived admin token on the machine of the server (running or not), if nobody can sign in',
      backup: 'create, verify and restore backups of a server',
    },
    ofServer: true,
    load: async ({ local }) => {
      const [{ addLocalCommands }, commands] = await Promise.all([import('./local-commands.ts'), local()])
      return (program, context) => addLocalCommands(program, context, commands)
    },
  },
  {
    topic: 'Run and maintain a server',
    verbs: {
      install: 'install a server in a Kubernetes cluster with kubectl, and print its URL and a link that signs in once',
      uninstall: 'remove a server that `skerry install` made; asks whether its volume is kept',
    },
    load: async () => (await import('./install/install-commands.ts')).addInstallCommands,
  },
  {
    topic: 'Run and maintain a server',
    verbs: { bundle: 'check an air-gap bundle of a release: checksums and signature' },
    load: async () => (await import('./bundle/bundle-command.ts')).addBundleCommands,
  },
  {
    topic: 'Run and maintain a server',
    verbs: {
      restore: 'show the changes that a server restored from a backup would make in its clusters',
      secrets: 'seal rendered Secrets to their clusters, and show what is left in clear',
      'webhook-secret': 'make a secret for the webhook of a repository, and show it once',
      'server-key': 'manage the keys of the server for signing, sessions, webhooks and secrets',
    },
    load: async () => (await import('./commands/keys.ts')).addKeyCommands,
  },
]

/** Verbs that ask no server: nothing of the client is loaded for them. */
export const OFFLINE_VERBS: ReadonlySet<string> = new Set([
  'config',
  'explain',
  'completion',
  'install',
  'uninstall',
  'bundle',
  'server',
  'dev',
  'doctor',
  'admin-token',
  'backup',
])
