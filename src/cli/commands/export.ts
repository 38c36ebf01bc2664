import { exportRun } from '../../run/export.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'

/** Writes a run in the format of a trainer. */
export const exportCommand: Command = {
  name: 'export',
  summary: 'Write a run as training rows',
  usage: 'RUN --to FORMAT --out FILE',
  about:
    'Writes the training rows of a run in canonical order (task, member, row), and says what the\\n' +
    'format could not carry. Failed and filtered trajectories are left out and counted, unless asked for.',
  examples: ['espalier export runs/0001 --to jsonl --out rows.jsonl'],
  settings: [],
  own: {
    to: { help: 'The format: jsonl', argument: 'FORMAT' },
    out: { help: 'The file to write', argument: 'FILE' },
    include: { help: 'Also write these: failed, filtered', argument: 'KINDS' },
    volatile: { help: 'Also write what depends on clocks and servers' },
  },
  isCommon: true,
  words: [1, 1],
  run: runExport,
}

async function runExport({ words, own, json, terminal }: Invocation): Promise<number> {
  const { to = 'jsonl', out } = own
  if (!out) throw new MisuseError('export needs --out FILE')
  const result = await exportRun(words[0]!, {
    to,
    out,
    include: readKinds(own.include),
    volatile: own.volatile !== undefined,
  })
  if (json) terminal.print(JSON.stringify({ out, ...result }))
  else {
    terminal.print(`${result.rows} rows written to ${out}`)
    for (const [reason, count] of Object.entries(result.leftOut)) {
      terminal.print(`left out: ${count} ${reason} trajectories (--include ${reason} writes them)`)
    }
    for (const line of result.lost) terminal.print(`not carried by ${to}: ${line}`)
  }
  return 0
}

function readKinds(text: string | undefined): readonly ('failed' | 'filtered')[] {
  const kinds = text?.split(',').filter(kind => kind !== '') ?? []
  const wrong = kinds.find(kind => kind !== 'failed' && kind !== 'filtered')
  if (wrong) throw new MisuseError(`--include takes failed and filtered, not "${wrong}"`)
  return kinds as ('failed' | 'filtered')[]
}
