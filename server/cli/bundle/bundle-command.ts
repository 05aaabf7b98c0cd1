// `skerry bundle verify`: before anything of an air-gap bundle is used. Needs no server and no network.
import { readFileSync } from 'node:fs'
import type { Command } from '@commander-js/extra-typings'
import { examples, output } from '../command-options.ts'
import type { Context, Output } from '../context.ts'
import { UsageError } from '../io.ts'
import { documentText } from '../printing/documents.ts'
import { readBundle } from './bundle-file.ts'
import { ownKeyOf, readPublicKey, verifyBundle } from './verify-bundle.ts'

export function addBundleCommands(program: Command, context: Context): void {
  program
    .command('bundle')
    .description('check an air-gap bundle of a release')
    .addHelpText('before', examples('skerry bundle verify skerry-airgap_0.1.0.tar --key skerry.pub'))
    .command('verify')
    .description('compare all files of an air-gap bundle with its checksums, and their signature with a public key')
    .argument('<bundle>', 'archive, or the folder of a release')
    .option('--key <file>', 'public key of the publisher, from a source that you trust and not from the bundle')
    .option('--checksums-only', 'find damage only: anybody can make a bundle with fitting checksums')
    .addOption(output())
    .addHelpText(
      'before',
      examples('skerry bundle verify skerry-airgap_0.1.0.tar --key skerry.pub', 'skerry bundle verify ./release --checksums-only'),
    )
    .addHelpText('after', '\nExit codes: 0 the bundle is good; 1 it is not; 2 invalid arguments.')
    .action((bundle, options) => verify(context, bundle, options))
}

interface VerifyOptions {
  key?: string
  checksumsOnly?: true
  output?: Output
}

function verify(context: Context, bundle: string, { key, checksumsOnly, output }: VerifyOptions): void {
  const { io } = context
  if ((key === undefined) === (checksumsOnly === undefined))
    throw new UsageError('expected one of --key FILE and --checksums-only: without a key nobody knows who made the bundle')
  const publicKey = key === undefined ? null : keyOf(key)
  const { check, ownKey } = readBundle(bundle, (files) => ({ check: verifyBundle(files, publicKey), ownKey: ownKeyOf(files) }))
  const isGood = check.problems.length === 0
  const document = documentText({ bundle, ...check, good: isGood }, output)
  if (document !== null) io.stdout.write(document)
  else if (isGood && check.signedBy !== null) io.stdout.write(`${bundle}: ${check.files} files, signed with the key ${check.signedBy}\n`)
  else if (isGood) {
    io.stdout.write(`${bundle}: ${check.files} files are as their checksums say\n`)
    io.stderr.write(`The signature was not checked. The bundle names the key ${ownKey ?? '(none)'}.\n`)
  } else io.stderr.write(check.problems.map((problem) => `error: ${problem}\n`).join(''))
  if (!isGood) context.exit(1)
}

function keyOf(path: string): ReturnType<typeof readPublicKey> {
  try {
    return readPublicKey(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new UsageError(`--key ${path}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
