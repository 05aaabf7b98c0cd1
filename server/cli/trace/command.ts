// The command `trace`: its arguments, options and help.
import type { Command } from '@commander-js/extra-typings'
import { examples, output } from '../command-options.ts'
import type { Context } from '../context.ts'
import { UsageError } from '../io.ts'

export function addTraceCommand(program: Command, context: Context): void {
  program
    .command('trace')
    .argument('<object>', 'KIND/NAMESPACE/NAME, or KIND/NAME of an object without a namespace; KIND.GROUP where two groups have the kind')
    .option('--cluster <name>', 'cluster that has the object; required')
    .option('-p, --project <name>', 'only of services of this project')
    .option('--service <name>', 'only of services of this name')
    .addOption(output())
    .addHelpText(
      'before',
      examples(
        'skerry trace deployment/shop/web --cluster oslo',
        'skerry trace cm/shop/settings --cluster oslo -o json',
        'skerry trace clusterrole/reader --cluster oslo',
        'skerry trace ingress.networking.k8s.io/shop/web --cluster oslo',
        "skerry trace deploy/shop/web --cluster oslo -o jsonpath='{.commit}'",
      ),
    )
    .addHelpText(
      'after',
      '\nOnly objects that a service applies are known. For a Pod, trace the workload that owns it.\n' +
        'Exit codes: 0 found; 1 not found, or an error; 2 invalid arguments.',
    )
    .action(async (object, { cluster, ...options }) => {
      // As a required option it would be reported as missing before an unknown flag is.
      if (cluster === undefined) throw new UsageError('trace needs --cluster NAME: the cluster that has the object')
      const { trace } = await import('./trace.ts')
      await trace(context, object, { cluster, ...options })
    })
}
