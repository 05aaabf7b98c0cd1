// The commands that change the fleet: apply, delete, confirm, refuse, sync.
import type { Command } from '@commander-js/extra-typings'
import { collect, examples, isGiven, output, projectOf, projectOption, scoped } from '../command-options.ts'
import type { Context } from '../context.ts'

const CONFIRM_DATA = 'exact name of an object with data that may be deleted when a service is removed; may be repeated'

export function addChangeCommands(program: Command, context: Context): void {
  program
    .command('apply')
    .showHelpAfterError('(files are named with -f FILE; see --help)')
    .option('-f, --filename <path>', 'file, folder or - for stdin; may be repeated', collect)
    .option('-R, --recursive', 'include subfolders')
    .option('--dry-run', 'check on the server, and show the changes, including services that leave clusters and the objects deleted there')
    .option('--confirm-data <name>', CONFIRM_DATA, collect)
    .addOption(output())
    .addHelpText(
      'before',
      examples(
        'skerry apply -f fleet.yaml',
        'skerry apply -f fleet/ -R --dry-run',
        'skerry get svc/web -o yaml | sed s/dev/prod/ | skerry apply -f -',
      ),
    )
    .action(async ({ filename = [], ...options }) => {
      const { apply } = await import('../apply.ts')
      await apply(context, { filename, ...options })
    })

  program
    .command('delete')
    .argument('<kind>', 'kind, or kind/name')
    .argument('[names...]', 'one name; services: one or more')
    .addOption(projectOption())
    .option('-y, --yes', 'do not ask for confirmation; objects that hold data are deleted only if --confirm-data names them')
    .option('--confirm-data <name>', CONFIRM_DATA, collect)
    .addHelpText(
      'before',
      examples(
        'skerry delete service web',
        'skerry delete services web shop till',
        "skerry delete service shop --yes --confirm-data 'PersistentVolumeClaim shop/data'",
        'skerry delete cluster/ship-7 --yes',
      ),
    )
    .action(async (kind, names, options, command) => {
      const [{ remove }, { suggestingNames }] = await Promise.all([import('../delete.ts'), import('../near-name.ts')])
      const given = scoped(context, options, isGiven(command))
      const work = () => remove(context, kind, names, given)
      await (names.length > 1 ? work() : suggestingNames(context, { kind, name: names[0], project: given.project }, work))
    })

  program
    .command('confirm')
    .argument('[id]')
    .option('-y, --yes', 'do not ask for confirmation')
    .option('--confirm-data <name>', CONFIRM_DATA, collect)
    .addOption(output())
    .addHelpText(
      'before',
      examples('skerry confirm', 'skerry confirm k7f2qx', "skerry confirm k7f2qx --yes --confirm-data 'PersistentVolumeClaim shop/data'"),
    )
    .action(async (id, options) => {
      const { confirm } = await import('../confirm.ts')
      await confirm(context, id, options)
    })

  program
    .command('refuse')
    .argument('<id>', 'id that `skerry confirm` lists')
    .option('--reason <text>', 'why the objects are kept; required, and others see it')
    .addHelpText('before', examples("skerry refuse k7f2qx --reason 'still used by the old tills'"))
    .action(async (id, { reason }) => {
      const { refuse } = await import('../confirm.ts')
      await refuse(context, id, reason)
    })

  program
    .command('sync')
    .argument('<service>', 'name, or service/name')
    .addOption(projectOption())
    .option('--cluster <name>', 'only in this cluster; may be repeated', collect)
    .option('-l, --selector <labels>', 'only in clusters with these labels: ring=canary')
    .option('--dry-run', 'show the plan only')
    .option('-y, --yes', 'do not ask for confirmation')
    .addOption(output())
    .addHelpText(
      'before',
      examples(
        'skerry sync web --dry-run',
        'skerry sync web',
        'skerry sync web --cluster ship-7 --cluster ship-8',
        'skerry sync web -l ring=canary --yes',
      ),
    )
    .addHelpText(
      'after',
      `
The plan compares the last synced revision of each cluster with the new one. It shows names and counts, not values.
The approval covers only the revision shown. If a newer one arrives first, nothing is done and the exit code is 1.
While a revision waits, drift is corrected to the applied revision, and nothing is pruned.
Exit codes: 0 success or nothing to sync, 1 failure or not approved, 2 invalid arguments.`,
    )
    .action(async (service, { cluster = [], ...options }, command) => {
      const { sync } = await import('../sync.ts')
      await sync(context, service, projectOf(context, { cluster, ...options }, isGiven(command)))
    })
}
