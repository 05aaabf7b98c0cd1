// The command `query`: SQL over views of the fleet.
import { type Command, Option } from '@commander-js/extra-typings'
import { SQL_ROWS_DEFAULT, SQL_ROWS_MAX } from '../../../shared/model/fleet-sql.ts'
import { examples, wholeNumber } from '../command-options.ts'
import type { Context } from '../context.ts'

export const QUERY_OUTPUTS = ['table', 'json', 'csv'] as const

export function addQueryCommands(program: Command, context: Context): void {
  program
    .command('query')
    .argument('[sql]', 'one SELECT over the views of the fleet')
    .option('--views', 'list the views and their columns')
    .option('--saved <name>', 'run a saved query; `skerry get saved-queries` lists them')
    .option('--save <name>', 'save the query for everybody who may query the fleet, instead of running it')
    .option('--about <text>', 'with --save: one line that describes the query')
    .option('--limit <count>', 'maximum number of rows', wholeNumber(SQL_ROWS_MAX), SQL_ROWS_DEFAULT)
    .addOption(new Option('-o, --output <form>', 'output format').choices(QUERY_OUTPUTS).default('table' as const))
    .option('--no-headers', 'omit the header line')
    .addHelpText(
      'before',
      examples(
        'skerry query "SELECT health, count(*) FROM placements GROUP BY health"',
        'skerry query "SELECT cluster, image FROM images WHERE image LIKE \'%nginx:1.2%\'" -o csv',
        'skerry query "SELECT name, time(last_seen_ms) FROM clusters WHERE last_seen_ms < ago(\'24h\')"',
        "skerry query \"SELECT name FROM clusters WHERE label(labels, 'env') = 'prod'\" -o json",
        'skerry query --save old-nginx --about "clusters with nginx 1.2" "SELECT cluster FROM images WHERE image LIKE \'%nginx:1.2%\'"',
        'skerry query --saved old-nginx',
        'skerry query --views',
      ),
    )
    .addHelpText(
      'after',
      '\nEach view has the rows that the caller may read. A query ends after 10 seconds.\n' +
        'Exit codes: 0 success; 1 failure; 2 invalid arguments.',
    )
    .action(async (sql, options) => {
      const { query } = await import('../query.ts')
      await query(context, sql, options)
    })
}
