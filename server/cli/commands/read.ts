// The commands that show what there is: get, describe, history, events, count.
import { type Command, Option } from '@commander-js/extra-typings'
import { LIST_LIMIT_MAX } from '../../../shared/model/constants.ts'
import { COUNT_BY, COUNT_OF } from '../../../shared/model/counts.ts'
import { collect, durationArgument, examples, isGiven, output, projectOf, projectOption, scoped, wholeNumber } from '../command-options.ts'
import type { Context } from '../context.ts'
import { UsageError } from '../io.ts'
import { KINDS, kindHelp, kindOf } from '../kinds.ts'

export function addReadCommands(program: Command, context: Context): void {
  program
    .command('get')
    .argument('<kind>', `kind, or kind/name: ${kindHelp(KINDS)}`)
    .argument('[name]')
    .addOption(projectOption())
    .option('-A, --all-projects', 'all projects')
    .option('-l, --selector <labels>', 'label selector, for the resource or its cluster: env=prod,tier!=x,region in (eu,us)')
    .option('--cluster <name>', 'only of this cluster')
    .option('--service <name>', 'only of this service')
    .option('--status-selector <words>', 'status filter; objects, placements: health=Degraded,sync!=Synced; clusters: liveness=Offline')
    .option('--search <words>', 'words that must all occur in a name, kind, cluster, reason or message')
    .option('--kind <kind>', 'objects: only of this kind')
    .option('-n, --namespace <name>', 'objects: only in this namespace')
    .option('--image <text>', 'objects: only those with this text in an image name, or of versions: web<1.4 (also <=, >, >=)')
    .option(
      '--sort-by <order>',
      'order: a JSONPath such as .status.sinceMs; objects: cluster, name, newest, oldest, health; placements: cluster, name, health; clusters: name, seen',
    )
    .option('--show-labels', 'show labels in the last column')
    .option('--limit <count>', 'maximum number of items', wholeNumber(1_000_000 - 1))
    .option('--chunk-size <count>', 'number of items for each request', wholeNumber(LIST_LIMIT_MAX))
    .option('-w, --watch', 'keep printing changes')
    .addOption(output())
    .option('--managed-fields', 'object KIND/NAMESPACE/NAME: show metadata.managedFields')
    .option('--no-headers', 'omit the header line')
    .addHelpText(
      'before',
      examples(
        'skerry get services -w',
        'skerry get clusters -l env=prod',
        'skerry get svc/web -o yaml',
        'skerry get objects --service web --cluster ship-7',
        "skerry get objects -A -l env=prod --status-selector 'health in (Degraded,Missing)' --sort-by newest --limit 20",
        'skerry get services -A -o wide',
        'skerry get object cm/shop/settings --cluster oslo -o yaml',
        'skerry get nodes -l env=prod',
        'skerry get services -o jsonpath=\'{.items[?(@.status.health=="Degraded")].metadata.name}\'',
        'skerry get clusters --sort-by .status.liveness.lastSeenMs -o custom-columns=NAME:.metadata.name,AGENT:.status.agentVersion',
      ),
    )
    .action(async (kind, name, options, command) => {
      if (/^nodes?$/.test(kind) && name === undefined) {
        const { liveNodes } = await import('../ask/tables.ts')
        context.exit(await liveNodes(context, options))
        return
      }
      const live = liveAddress(kind, name)
      if (live !== null) {
        const { liveObject } = await import('../ask/live.ts')
        context.exit(await liveObject(context, live, projectOf(context, options, isGiven(command))))
        return
      }
      const [{ get }, { suggestingNames }] = await Promise.all([import('../get.ts'), import('../near-name.ts')])
      const given = scoped(context, options, isGiven(command))
      await suggestingNames(context, { kind, name, project: given.project }, () => get(context, kind, name, given))
    })

  program
    .command('describe')
    .argument('<kind>', 'kind, or kind/name')
    .argument('[name]')
    .addOption(projectOption())
    .option('--cluster <name>', 'object: its cluster')
    .addOption(output())
    .addHelpText(
      'before',
      examples(
        'skerry describe service web',
        'skerry describe cluster/ship-7',
        'skerry describe object deployment/shop/web --cluster ship-7',
      ),
    )
    .action(async (kind, name, options, command) => {
      const [{ describe }, { suggestingNames }] = await Promise.all([import('../describe.ts'), import('../near-name.ts')])
      if (kindOf(kind.split('/')[0] ?? '') === 'objects') {
        const { describeObject } = await import('../trace/describe-object.ts')
        return describeObject(context, kind, name, { ...options, project: isGiven(command) ? options.project : undefined })
      }
      if (options.cluster !== undefined) throw new UsageError('--cluster is for skerry describe object KIND/NAMESPACE/NAME')
      const given = scoped(context, options, isGiven(command))
      await suggestingNames(context, { kind, name, project: given.project }, () => describe(context, kind, name, given))
    })

  program
    .command('history')
    .argument('<kind>', 'service or cluster, or service/name')
    .argument('[name]')
    .addOption(projectOption())
    .option('--cluster <name>', 'show the changes of the service in this cluster, with their causes')
    .option('--since <duration>', 'only what is not older, such as 12h; default of a cluster 24h', durationArgument)
    .option(
      '--limit <count>',
      'maximum number of entries, newest first; default 20, of a cluster or with --since 200',
      wholeNumber(LIST_LIMIT_MAX),
    )
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText(
      'before',
      examples(
        'skerry history service web',
        'skerry history svc/web --cluster ship-7',
        'skerry history service web --cluster ship-7 --since 12h',
        'skerry history cluster ship-7 --since 12h',
        'skerry history service web --limit 5 -o json',
      ),
    )
    .action(async (kind, name, options, command) => {
      const { history } = await import('../history.ts')
      await history(context, kind, name, projectOf(context, options, isGiven(command)))
    })

  program
    .command('events')
    .option('-p, --project <name>', 'only of this project')
    .option('--cluster <name>', 'only of this cluster')
    .option('--service <name>', 'only of services with this name')
    .option('--trace <id>', 'only of the change with this correlation id, which `skerry trace` shows')
    .option('--since <duration>', 'only those that are not older, such as 12h', durationArgument)
    .option('--for <object>', 'live Kubernetes Events of this object instead, asked of the cluster: pod/shop/web-5d9c7')
    .option('-l, --selector <labels>', 'with --for: ask all clusters with these labels')
    .option('-f, --follow', 'keep printing new events')
    .option('--limit <count>', 'maximum number of past events', wholeNumber(LIST_LIMIT_MAX), 50)
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText(
      'before',
      examples(
        'skerry events --cluster ship-7',
        'skerry events --since 12h --limit 500',
        'skerry events -f',
        'skerry events --for deploy/shop/web --cluster ship-7',
        'skerry events --service web -o json',
        'skerry events --trace 4bf92f3577b34da6a3ce929d0e0e4736',
      ),
    )
    .action(async (options) => {
      if (options.for !== undefined) {
        const { liveEvents } = await import('../ask/tables.ts')
        context.exit(
          await liveEvents(
            context,
            options.for,
            projectOf(context, { ...options, project: options.project ?? '' }, options.project !== undefined),
          ),
        )
        return
      }
      if (options.selector !== undefined) throw new UsageError('--selector needs --for OBJECT')
      const { events } = await import('../events.ts')
      await events(context, options)
    })

  program
    .command('count')
    .option('--by <what>', `${COUNT_BY.join(', ')}; also label=KEY, service=PROJECT, version=agent, image=PREFIX`)
    .addOption(new Option('--of <what>', 'placements (services in clusters), objects or clusters').choices(COUNT_OF))
    .option('--top <count>', 'only the keys with the largest counts', wholeNumber(LIST_LIMIT_MAX))
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText(
      'before',
      examples(
        'skerry count --by health',
        'skerry count --by label=env',
        'skerry count --by image --top 20',
        'skerry count --by drift-age',
        "skerry count --by service --no-headers | awk '$2 != $4 { print $1 }'",
      ),
    )
    .action(async (options) => {
      const { count } = await import('../count.ts')
      await count(context, options)
    })

  program
    .command('wait')
    .argument('<kind>', 'service, cluster, repository, placements or objects; or kind/name')
    .argument('[name]')
    .option(
      '--for <condition>',
      'healthy, synced, ready, online, suspended, deleted, condition=NAME[=false] or jsonpath=PATH[=VALUE]; may be repeated; all must hold',
      collect,
    )
    .option('--timeout <duration>', 'maximum time to wait: 30s, 10m; 0: check once', '5m')
    .option('--all', 'all resources of the kind')
    .addOption(projectOption())
    .option('-A, --all-projects', 'all projects')
    .option('-l, --selector <labels>', 'label selector: team=web')
    .option('--cluster <name>', 'placements and objects: only of this cluster')
    .option('--service <name>', 'placements and objects: only of this service')
    .option('--kind <kind>', 'objects: only of this kind')
    .option('-n, --namespace <name>', 'objects: only in this namespace')
    .addOption(output())
    .addHelpText(
      'before',
      examples(
        'skerry wait svc/web --for=synced --for=healthy --timeout 10m',
        'skerry wait services -l team=web --for=ready',
        'skerry wait placements --service web --cluster ship-7 --for=healthy',
        'skerry wait cluster/ship-7 --for=online --timeout 1h',
        "skerry wait svc/web --for=jsonpath='{.status.commit}'=0123456789abcdef0123456789abcdef01234567",
        'skerry wait svc/old --for=deleted',
      ),
    )
    .addHelpText(
      'after',
      '\nThe command follows the change feed and does not poll. ready: Synced and Healthy; for a repository: readable.\n' +
        'Exit codes: 0 all conditions hold; 1 timeout (the missing conditions are printed) or failure; 2 invalid arguments.',
    )
    .action(async (kind, name, { for: conditions = [], ...options }, command) => {
      const { wait } = await import('../wait.ts')
      await wait(context, kind, name, projectOf(context, { for: conditions, ...options }, isGiven(command)))
    })
}

/** `object KIND/NAMESPACE/NAME` is asked of the cluster itself; `objects` are those that services apply. Null means
 *  something else. */
function liveAddress(kind: string, name: string | undefined): string | null {
  if (kind === 'object') return name?.includes('/') ? name : null
  const address = /^object\/(.+\/.+)$/.exec(kind)?.[1]
  return name === undefined ? (address ?? null) : null
}
