import { commandLine } from '../../../base/core/names/program-name.ts'
import { importRun } from '../../../run/exchange/import.ts'
import { openRenderer } from '../../../run/settings/model-source.ts'
import { readerNamed, readers } from '../../../run/sinks/readers/registry.ts'
import { claimRunFolder } from '../../../run/store/run-folder.ts'
import { type Command, type Invocation, MisuseError } from '../../command.ts'

/** Makes a run of a file that another program wrote. */
export const importCommand: Command = {
  name: 'import',
  usage: 'FILE --from FORMAT [--out RUN]',
  about:
    'Reads trajectories back from a file, so that show, score and export work on them. Formats that\n' +
    'keep messages only need --model to encode them; such trajectories are marked re-encoded. Results\n' +
    'of tau-bench are read without it too: then they can be shown, compared and exported to tau-bench\n' +
    'again, not to trainers. --tasks gives tasks their data again, which rewards may need and rows do\n' +
    'not keep.\n\n' +
    `Formats: ${readers.map(({ name }) => name).join(', ')}`,
  examples: [
    'espalier import rows.parquet --from parquet --out runs/imported',
    'espalier import results.json --from tau-bench --out runs/published',
    'espalier import results.json --from tau-bench --model Qwen/Qwen3-4B',
  ],
  settings: ['model', 'offline', 'hub', 'tasks', 'out'],
  own: { from: { help: 'The format of the file', argument: 'FORMAT' } },
  positionalCount: [1, 1],
  run: runImport,
}

async function runImport({
  positionals: words,
  own,
  flags,
  json,
  terminal,
}: Invocation): Promise<number> {
  const { from } = own
  if (!from) throw new MisuseError('import needs --from FORMAT')
  checkFormat(from)
  await using claimed = await claimRunFolder(flags.out)
  const { out } = claimed
  const { model, offline, hub } = flags
  const renderer =
    model === undefined
      ? undefined
      : await openRenderer(model, {
          tell: terminal.tell,
          ...(offline !== undefined && { offline }),
          ...(hub !== undefined && { hub }),
        })
  const file = words[0]!
  const { tasks } = flags
  if (typeof tasks === 'number') throw new MisuseError('--tasks names a file here, not a number')
  const counts = await importRun(file, {
    from,
    out,
    ...(renderer && { renderer }),
    ...(tasks !== undefined && { tasks }),
  })
  if (json) {
    terminal.print(JSON.stringify({ run: out, ...counts }))
    return 0
  }
  const { groups, trajectories, rows, encodedAgain } = counts
  terminal.print(`${trajectories} trajectories in ${groups} groups, ${rows} rows, read into ${out}`)
  if (encodedAgain > 0) terminal.print(`re-encoded from messages: ${encodedAgain} trajectories`)
  if (rows === 0 && trajectories > 0 && !renderer) {
    terminal.print('no tokens, messages only: --model DIR|ID encodes them for trainers')
  }
  terminal.print(`next  ${commandLine('show', out)}`)
  return 0
}

function checkFormat(from: string): void {
  try {
    readerNamed(from)
  } catch (error) {
    throw new MisuseError((error as Error).message)
  }
}
