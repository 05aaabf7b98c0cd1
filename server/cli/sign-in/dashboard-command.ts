// The command `dashboard`: a one-time link, so that nobody copies a token into a browser.
import type { Command } from '@commander-js/extra-typings'
import { signInLinkSchema } from '../../../shared/model/sign-in.ts'
import { examples, output } from '../command-options.ts'
import type { Context, Output } from '../context.ts'
import { documentText } from '../printing/documents.ts'

export function addDashboardCommand(program: Command, context: Context): void {
  program
    .command('dashboard')
    .description('print a link that opens the dashboard once, signed in; valid for ten minutes')
    .option('--open', 'open the link in a browser on this machine')
    .addOption(output())
    .addHelpText('before', examples('skerry dashboard', 'skerry dashboard --open', 'skerry dashboard -o json'))
    .addHelpText(
      'after',
      `
The link signs in with the rights of the API token, for 12 hours.
It needs the right to create API tokens. Whoever opens it first is signed in: do not send it to others.`,
    )
    .action(({ open, output: form }) => printLink(context, open === true, form))
}

async function printLink(context: Context, isOpened: boolean, form: Output | undefined): Promise<void> {
  const { io } = context
  const link = await context.client().send('POST', '/sign-in-links', signInLinkSchema)
  io.stdout.write(documentText(link, form) ?? `${link.url}\n`)
  if (isOpened) io.openBrowser?.(link.url)
}
