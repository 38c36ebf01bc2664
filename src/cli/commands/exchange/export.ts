import { rowForms } from '../../../base/core/row.ts'
import { lossKind } from '../../../base/math/registry.ts'
import { readImportance } from '../../../engine/weigh/importance.ts'
import {
  type Exported,
  type ExportOptions,
  exportRun,
  type WrittenForm,
} from '../../../run/exchange/export.ts'
import { exportToHub, readHubTarget } from '../../../run/exchange/hub/export-hub.ts'
import { refuseForeign } from '../../../run/exchange/output-file.ts'
import { defaults } from '../../../run/settings/settings.ts'
import { formatNamed, formats } from '../../../run/sinks/formats/registry.ts'
import { makeSelection, type Selection } from '../../../run/sinks/selection.ts'
import { type Command, type Invocation, MisuseError } from '../../command.ts'

/** Writes a run in the format of a trainer. */
export const exportCommand: Command = {
  name: 'export',
  usage: 'RUN (--to FORMAT --out FILE | --to hub:OWNER/NAME)',
  about:
    'Writes the training rows of a run in canonical order (task, member, row), says what the format\n' +
    'could not carry, and prints the lines that load the file. Failed and filtered trajectories are\n' +
    'left out and counted, unless asked for.\n\nFormats:\n' +
    formats.map(({ name, summary }) => `  ${name.padEnd(12)}${summary}`).join('\n') +
    '\n\nhub:OWNER/NAME[,format=FORMAT][,visibility=public] commits the rows to a dataset of the Hugging Face\n' +
    'Hub, private unless you say otherwise, with HF_TOKEN. Images are freed of places, times and comments.',
  examples: [
    'espalier export runs/0001 --to jsonl --out rows.jsonl',
    "espalier export runs/0001 --to openai-sft --where 'reward >= 1' --best 1 --out sft.jsonl",
    'espalier export runs/0001 --to hub:me/desk-rows',
  ],
  settings: ['importance', 'hub'],
  own: {
    to: { help: 'The format (default: jsonl), or hub:OWNER/NAME', argument: 'FORMAT' },
    out: { help: 'The file to write', argument: 'FILE' },
    where: {
      help: "Only trajectories of which this holds: 'reward >= 1 and turns < 8'",
      argument: 'CONDITION',
    },
    best: { help: 'Only the N best trajectories of each group', argument: 'N' },
    include: { help: 'Also write these: failed, filtered', argument: 'KINDS' },
    rows: {
      help: 'once: each sampled token in one row; paths: every trajectory whole (default: by format)',
      argument: 'FORM',
    },
    loss: { help: "The loss they will be trained with (default: the run's)", argument: 'NAME' },
    without: { help: 'Leave out what a format cannot carry: experts', argument: 'experts' },
    volatile: { help: 'Also write what depends on clocks and servers' },
  },
  positionalCount: [1, 1],
  run: runExport,
}

async function runExport({
  positionals: words,
  own,
  flags,
  json,
  terminal,
  signal,
}: Invocation): Promise<number> {
  const { to: target = 'jsonl', out, where } = own
  const onHub = readHubTarget(target)
  const to = onHub?.format ?? target
  if (onHub && out) throw new MisuseError(`--to ${target} writes no file: leave out --out`)
  if (!onHub && !out) throw new MisuseError('export needs --out FILE')
  if (out) refuseForeign('--out', out, 'export')
  const selection: Selection = {
    ...(where !== undefined && { where }),
    ...(own.best !== undefined && { best: readBest(own.best) }),
    include: readKinds(own.include),
  }
  const form = readForm(own)
  checkFlags(to, selection, form, flags.importance)
  if (own.without !== undefined && own.without !== 'experts')
    throw new MisuseError(`--without takes experts, not "${own.without}"`)
  const volatile = own.volatile !== undefined
  const { importance } = flags
  const options = {
    ...{ ...selection, ...form, volatile, signal },
    ...(importance && { importance }),
    ...(own.without === 'experts' && { withoutExperts: true }),
  }
  const hub = flags.hub ?? defaults.hub
  const result = onHub
    ? await exportToHub(words[0]!, { ...options, target: onHub, hub })
    : await exportRun(words[0]!, { ...options, to, out: out! })
  const place = 'url' in result ? String(result.url) : out!
  if (json) terminal.print(JSON.stringify({ out: place, ...result }))
  else for (const line of describeExport(to, place, result)) terminal.print(line)
  if (result.rows > 0) return 0
  terminal.tell('no rows: nothing to train on was exported')
  return 1
}

function describeExport(to: string, out: string, result: Exported): readonly string[] {
  const reasons: Readonly<Record<string, string>> = {
    failed: 'that failed (--include failed writes them)',
    filtered: 'that a filter dropped (--include filtered writes them)',
    where: 'of which the condition does not hold',
    best: 'that are not among the best of their group',
  }
  return [
    `${result.rows} rows written to ${out}`,
    ...(result.form ? formLines(result.form) : []),
    ...Object.entries(result.leftOut).map(
      ([reason, count]) => `left out: ${count} trajectories ${reasons[reason]}`,
    ),
    ...result.lost.map(({ what, count }) => `not carried by ${to}: ${what} (${count})`),
    ...result.notes.map(note => `note: ${note}`),
    ...result.loading,
  ]
}

const formWords: Readonly<Record<WrittenForm['rows'], string>> = {
  once: 'each token in one row',
  paths: 'each path whole in one row',
}

/** Which rows these are, why, and what they cost. */
function formLines(form: WrittenForm): readonly string[] {
  const { rows, because, loss, tokens, trained, once } = form
  const times =
    trained === once ? '' : `, ${(trained / once).toFixed(2)} times those of --rows once`
  return [
    `${formWords[rows]} (--rows ${rows}) for --loss ${loss}${because === undefined ? '' : `: ${because}`}`,
    `${tokens} tokens in rows, ${trained} of them trained${times}`,
  ]
}

function readForm({ rows, loss }: Invocation['own']): Pick<ExportOptions, 'rows' | 'loss'> {
  const form = rowForms.find(each => each === rows)
  if (rows !== undefined && !form)
    throw new MisuseError(`--rows takes once or paths, not "${rows}"`)
  return { ...(form && { rows: form }), ...(loss !== undefined && { loss }) }
}

/** Checks the flags before the run is opened; a wrong one is misuse. */
function checkFlags(
  to: string,
  selection: Selection,
  { rows, loss }: ReturnType<typeof readForm>,
  importance: readonly string[] | undefined,
): void {
  try {
    const { training } = formatNamed(to)
    if (rows !== undefined && !training)
      throw new Error(`${to} has no rows to choose: leave out --rows`)
    if (loss !== undefined) lossKind(loss)
    makeSelection(selection)
    if (importance) readImportance(importance)
  } catch (error) {
    throw new MisuseError((error as Error).message)
  }
}

function readBest(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new MisuseError(`--best takes a whole number from 1 on, not "${text}"`)
}

function readKinds(text: string | undefined): readonly ('failed' | 'filtered')[] {
  const kinds = text?.split(',').filter(kind => kind !== '') ?? []
  const wrong = kinds.find(kind => kind !== 'failed' && kind !== 'filtered')
  if (wrong) throw new MisuseError(`--include takes failed and filtered, not "${wrong}"`)
  return kinds as ('failed' | 'filtered')[]
}
