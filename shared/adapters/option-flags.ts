// Gives a commander command the flags of an option table.
import { Option } from 'commander'
import { envName, flagName, type OptionTable } from '../runtime/options.ts'

export function addOptions<C extends { addOption(option: Option): unknown }>(command: C, table: OptionTable): C {
  for (const [name, entry] of Object.entries(table)) {
    const value = entry.type === 'flag' ? '' : ` <${entry.placeholder ?? (entry.type === 'address' ? 'host:port' : entry.type)}>`
    const given = entry.required === true ? 'required' : entry.default === undefined ? '' : `default: ${entry.default}`
    const facts = [given, `env: ${envName(name)}`].filter(Boolean).join(', ')
    const choices = entry.choices === undefined ? '' : ` One of ${entry.choices.join(', ')}.`
    command.addOption(new Option(`${flagName(name)}${value}`, `${entry.help}${choices} (${facts})`))
  }
  return command
}
