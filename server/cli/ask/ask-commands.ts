// The commands `logs`, `tree` and `restart`: their arguments, options and help.
import type { Command } from '@commander-js/extra-typings'
import { LOG_TAIL_MAX } from '../../../shared/protocol/ask.ts'
import { examples, isGiven, projectOf, projectOption } from '../command-options.ts'
import type { Context } from '../context.ts'
import { UsageError } from '../io.ts'

const OBJECT = 'KIND/NAMESPACE/NAME, or KIND/NAME of an object without a namespace; KIND.GROUP for custom kinds'
const CLUSTER = 'cluster to ask, or several: a,b'
const SELECTOR = 'ask all clusters with these labels: env=prod,region in (eu,us)'
const SERVICE = 'service that the object belongs to; needed without a right on the cluster'

const AFTER = `
The agent of the cluster answers through its own connection; nothing connects to the site. A cluster that is offline
is refused at once. Exit codes: 0 every cluster answered; 1 some did not, or it failed; 2 invalid arguments.`

export function addAskCommands(program: Command, context: Context): void {
  program
    .command('logs')
    .argument('<object>', OBJECT)
    .option('--cluster <name>', CLUSTER)
    .option('-l, --selector <labels>', SELECTOR)
    .addOption(projectOption())
    .option('--service <name>', SERVICE)
    .option('-c, --container <name>', 'only this container; default all')
    .option('-f, --follow', 'keep printing new lines')
    .option('--previous', 'log of the run before the present one')
    .option('--since <duration>', 'only lines newer than this: 30s, 5m, 2h')
    .option('--tail <count>', 'only the last lines of each container', lineCount)
    .option('--timestamps', 'print the time of each line')
    .addHelpText(
      'before',
      examples(
        'skerry logs pod/shop/web-5d9c7 --cluster oslo',
        'skerry logs deploy/shop/web --cluster oslo -f --since 10m',
        'skerry logs pod/shop/web-5d9c7 --cluster oslo -c app --previous --tail 50',
        'skerry logs deploy/shop/web -l env=prod --tail 1 --service web',
      ),
    )
    .addHelpText('after', AFTER)
    .action(async (object, options, command) => {
      const { liveLogs } = await import('./live.ts')
      context.exit(await liveLogs(context, object, projectOf(context, options, isGiven(command))))
    })

  program
    .command('tree')
    .argument('<object>', OBJECT)
    .option('--cluster <name>', CLUSTER)
    .option('-l, --selector <labels>', SELECTOR)
    .addOption(projectOption())
    .option('--service <name>', SERVICE)
    .option('--json', 'print lines of JSON')
    .addHelpText('before', examples('skerry tree deploy/shop/web --cluster oslo', 'skerry tree sts/shop/db -l env=prod --json'))
    .addHelpText('after', AFTER)
    .action(async (object, options, command) => {
      const { liveTree } = await import('./live.ts')
      context.exit(await liveTree(context, object, projectOf(context, options, isGiven(command))))
    })

  program
    .command('restart')
    .argument('<object>', 'deployment, statefulset or daemonset: KIND/NAMESPACE/NAME')
    .option('--cluster <name>', CLUSTER)
    .option('-l, --selector <labels>', SELECTOR)
    .addOption(projectOption())
    .option('--service <name>', SERVICE)
    .option('--yes', 'do not ask before a restart in several clusters')
    .addHelpText('before', examples('skerry restart deploy/shop/web --cluster oslo', 'skerry restart deploy/shop/web -l env=test --yes'))
    .addHelpText('after', AFTER)
    .action(async (object, options, command) => {
      const { liveRestart } = await import('./live.ts')
      context.exit(await liveRestart(context, object, projectOf(context, options, isGiven(command))))
    })
}

function lineCount(text: string): number {
  if (!/^\d{1,7}$/.test(text) || Number(text) > LOG_TAIL_MAX)
    throw new UsageError(`expected a whole number from 0 to ${LOG_TAIL_MAX}, not "${text}"`)
  return Number(text)
}
