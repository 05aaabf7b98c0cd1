// `skerry-agent audit`: the orders of people at the site. Works without a network and without a running agent.
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import type { AuditRecord } from '../../shared/model/audit.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { RUN_OPTIONS } from '../config.ts'
import { ORDERS, QUESTIONS, RESTARTS, readOrderLog } from '../order-log.ts'
import { examples } from './edge-commands.ts'

export interface AuditIo {
  out(text: string): void
  format(): string
}

export function addAuditCommand(program: Command, { out, format }: AuditIo): void {
  program
    .command('audit')
    .description('List the local commands at this site, oldest first, and verify that none was changed or removed')
    .addHelpText('before', examples('audit', 'audit --questions -o json'))
    .addOption(new Option('--data <DIR>', 'data folder of the agent').env('SKERRY_DATA').default(RUN_OPTIONS.data.default))
    .option('--questions', 'list the questions and restarts that people asked for through the server instead')
    .action(({ data, questions = false }: { data: string; questions?: boolean }) => {
      const logs = (questions ? [QUESTIONS, RESTARTS] : [ORDERS]).map((files) => readOrderLog(resolve(data), files))
      const entries = logs.flatMap((log) => log.entries).toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
      const broken = logs.find((log) => log.broken !== null)?.broken ?? null
      if (format() === 'text')
        out(entries.length === 0 ? `No ${questions ? 'questions to' : 'local commands at'} this site.\n` : entries.map(lineOf).join(''))
      else for (const entry of entries) out(`${JSON.stringify(entry)}\n`)
      if (broken === null) return
      throw new AppError('data_unusable', {
        doing: 'verify the audit log of this agent',
        detail: `entry ${broken.seq}: ${broken.problem}`,
        remedy: 'The file was changed, or the disk lost a part of it. The events of the server contain the same commands.',
      })
    })
}

function lineOf({ at, actor, verb, kind, project, name, result, reason, detail }: AuditRecord): string {
  const object = name === undefined ? kind : `${kind} ${project}/${name}`
  const why = [reason, detail].filter((text) => text !== undefined).join('; ')
  return `${at}  ${actor.name}${actor.verified ? '' : '?'}  ${verb}  ${object}${result === 'failed' || result === 'denied' ? `  ${result}` : ''}${why === '' ? '' : `  ${why}`}\n`
}
