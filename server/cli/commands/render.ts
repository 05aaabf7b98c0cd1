// The commands that look at manifests before a cluster has them: render, health-check.
import { type Command, Option } from '@commander-js/extra-typings'
import { addOptions } from '../../../shared/adapters/option-flags.ts'
import { RENDER_OUTPUTS } from '../../../shared/adapters/render-text.ts'
import { collect, examples, isGiven, output, projectOf, projectOption } from '../command-options.ts'
import type { Context } from '../context.ts'
import type { LocalCommand, PreviewCommands } from '../local-commands.ts'
import { DIFF_OUTPUTS } from '../outputs.ts'

const RENDER_HELP = `
Data of Secrets, and values from the secrets of Configs, are shown as marks. Options from --dir on apply only to rendering on this machine (-f).
Exit codes: 0 rendered, 1 render errors (printed as file:line:column), 2 invalid arguments.`

const HEALTH_CHECK_HELP = `
RULE names the deciding rule. Rules are evaluated in this order:
  deletion               the object is being deleted
  observedGeneration     the controller has not observed the newest spec
  service                spec.health of the service
  healthrule:NAME        a HealthRule of the project (PROJECT/NAME), then of the fleet
  stop                   paused or suspended
  condition:TYPE         Stalled or Reconciling is True
  kind:GROUP/KIND        a built-in rule for this kind
  general                conditions, phases and counters of any other custom kind
  existence              any other built-in kind

The health deadline and the Pods of a workload are not evaluated. An object without a status is Progressing. With --crd it
is Healthy if its kind has no status, or 120 s after it was created, as in a cluster.
Exit codes: 0 Healthy or Suspended, 1 any other health, 2 invalid arguments, or an object or a rule that cannot be read.`

const DIFF_HELP = `
Nothing is changed. The objects are rendered by the server as they would be, with marks in place of the secrets of Configs.
Data of Secrets is shown as marks. Needs the right to render the service; -f needs the right to write it, too.
Exit codes: 0 no differences, 1 differences, 2 an error: invalid arguments, no answer, or content that does not render.`

export function addDiffCommand(program: Command, context: Context, pack: PreviewCommands['pack']): void {
  program
    .command('diff')
    .argument('[service]', 'name, or service/name')
    .addOption(projectOption())
    .option('--dir <path>', 'proposed files: the root folder of the repository, or REPOSITORY=PATH,…')
    .option('--ref <ref>', 'proposed revision: branch, tag or full commit id, or REPOSITORY=REF,…')
    .option('-f, --filename <file>', 'proposed Service: a file with the resource, or - for stdin')
    .option(
      '--live',
      'compare the applied objects with the live ones in the clusters, field by field; with --dir, --ref or -f try the proposed objects there by dry run',
    )
    .option('--cluster <name>', 'only for this cluster (default: every cluster that has the service or would get it)')
    .option('-l, --selector <labels>', 'only for clusters with these labels: env=prod,region in (eu,us)')
    .addOption(new Option('-o, --output <form>', 'output format').choices(DIFF_OUTPUTS))
    .addHelpText(
      'before',
      examples(
        'skerry diff web --dir .',
        'skerry diff web --dir . --cluster ship-7',
        'skerry diff web --ref feature/blue -l env=prod -o summary',
        'skerry diff -f service.yaml --dir .',
        'skerry diff web --live --cluster ship-7',
        'skerry diff web --live --ref feature/blue --cluster ship-7',
      ),
    )
    .addHelpText('after', DIFF_HELP)
    .action(async (service, options, command) => {
      if (options.live && (options.dir !== undefined || options.ref !== undefined || options.filename !== undefined)) {
        const { dryRunLive } = await import('../ask/dry-run.ts')
        context.exit(await dryRunLive(context, service, projectOf(context, options, isGiven(command)), pack))
        return
      }
      if (options.live) {
        const { diffLive } = await import('../ask/live.ts')
        context.exit(await diffLive(context, service, projectOf(context, options, isGiven(command))))
        return
      }
      const { diff } = await import('../diff.ts')
      context.exit(await diff(context, service, projectOf(context, options, isGiven(command)), pack))
    })
}

export function addRenderCommands(program: Command, context: Context, local: LocalCommand): void {
  const renderCommand = program
    .command('render')
    .argument('[service]', 'name, or service/name')
    .addOption(projectOption())
    .option('--cluster <name>', 'render for this cluster')
    .option('--explain', 'list the effective variables and Helm values, and the level that each comes from')
    .option('--all-clusters', 'list the variants of the service, and the clusters that share each')
    .option('-f, --filename <file>', 'render on this machine: file with the Service, and optional Configs and a Cluster')
    .addOption(new Option('-o, --output <form>', 'output format of the objects').choices(RENDER_OUTPUTS))
    .addHelpText(
      'before',
      examples(
        'skerry render web',
        'skerry render web --cluster ship-7 -o name',
        'skerry render web --cluster ship-7 --explain',
        'skerry render web --all-clusters',
        'skerry render -f service.yaml --dir .',
        'skerry render web -f fleet.yaml --dir apps=.,charts=../charts --cluster-name ship-7 --cluster-labels region=eu --kube-version v1.36.3',
      ),
    )
    .addHelpText('after', RENDER_HELP)
    .action(async (service, options, command) => {
      const { render } = await import('../render.ts')
      const inProject = projectOf(context, options, isGiven(command))
      context.exit(options.filename === undefined ? await render(context, service, inProject) : await local.run(options, service ?? ''))
    })
  addOptions(renderCommand, local.table)

  program
    .command('health-check')
    .option('-f, --filename <path>', 'objects: file, folder or - for stdin; may be repeated', collect)
    .option('--rule <path>', 'HealthRules to use: file, folder or -; may be repeated', collect)
    .option('--service <file>', 'file with a Service whose health rules and options apply, with the rules of its project')
    .option('--crd <path>', 'CustomResourceDefinitions of the objects: file, folder or -; may be repeated', collect)
    .option('--from-server', 'also use the HealthRules of the server')
    .option('-R, --recursive', 'include subfolders')
    .addOption(output())
    .option('--no-headers', 'omit the header line')
    .addHelpText(
      'before',
      examples(
        'skerry health-check -f thing.yaml',
        'kubectl get thing x -o yaml | skerry health-check -f - --rule rules/',
        'skerry health-check -f thing.yaml --service service.yaml --from-server -o json',
      ),
    )
    .addHelpText('after', HEALTH_CHECK_HELP)
    .action(async (options) => {
      const { healthCheck } = await import('../health-check.ts')
      context.exit(await healthCheck(context, options))
    })
}
