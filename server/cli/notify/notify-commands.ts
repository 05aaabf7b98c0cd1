// `skerry notify`: try a sink, and send a dead notification again.
import { type Command, Option } from '@commander-js/extra-typings'
import { notificationTestAnswerSchema, notificationViewSchema } from '../../../shared/model/notification-views.ts'
import { path } from '../client.ts'
import { examples } from '../command-options.ts'
import type { Context } from '../context.ts'
import { notifyPath } from './facts.ts'

const TEST_HELP = `
The message goes to the receiver at once, past the outbox, routes and quiet hours. A sink for commit statuses is only asked whether
its token reads the repository.
Exit codes: 0 delivered; 1 not delivered or not found; 2 invalid arguments.`

export function addNotifyCommands(program: Command, context: Context): void {
  const json = () => new Option('-o, --output <form>', 'output format').choices(['json'] as const)
  const notify = program
    .command('notify')
    .description('send a test message to a notification sink, or send a dead notification again')
    .addHelpText('before', examples('skerry notify test ops-chat -p shop', 'skerry notify retry 42', 'skerry get notifications'))
  notify
    .command('test')
    .description('send a test message to a sink')
    .argument('<sink>', 'name of the NotificationSink')
    .option('-p, --project <name>', 'project of the sink; default: a sink of the fleet')
    .addOption(json())
    .addHelpText('before', examples('skerry notify test ops-chat', 'skerry notify test ops-chat -p shop'))
    .addHelpText('after', TEST_HELP)
    .action(async (name, { project, output }) => {
      const address = `${notifyPath('notification-sinks', name, project)}/test`
      const answer = await context.client().send('POST', address, notificationTestAnswerSchema)
      const { delivered, detail, durationMs } = answer
      if (output === 'json') context.io.stdout.write(`${JSON.stringify(answer, null, 2)}\n`)
      else if (delivered) context.io.stdout.write(`notificationsink/${name}: delivered in ${durationMs} ms: ${detail}\n`)
      else context.io.stderr.write(`notificationsink/${name}: not delivered: ${detail}\n`)
      if (!delivered) context.exit(1)
    })
  notify
    .command('retry')
    .description('send a dead notification again')
    .argument('<id>', 'id of the notification')
    .addHelpText('before', examples('skerry notify retry 42', 'skerry get notifications'))
    .action(async (id) => {
      await context.client().send('POST', path`/notifications/${id}/retry`, notificationViewSchema)
      context.io.stdout.write(`notification/${id} will be sent again\n`)
    })
}
