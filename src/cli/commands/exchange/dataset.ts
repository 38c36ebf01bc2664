import type { Json } from '../../../base/core/ids.ts'
import { splitItems } from '../../../base/core/names/part-name.ts'
import { buildDataset, type DatasetReport } from '../../../learn/datasets/build.ts'
import {
  type DatasetSource,
  datasetKinds,
  measureLosses,
  openDatasetItems,
} from '../../../learn/datasets/open.ts'
import { readSplits } from '../../../learn/datasets/splits.ts'
import { type Command, type Invocation, MisuseError, unknownVerb } from '../../command.ts'

const defaultCondenser = 'keyword:boundary=blank-line'

/** Builds supervised sets for policies and condensers that work on condensed texts. */
export const datasetCommand: Command = {
  name: 'dataset',
  usage: 'condensed-sft|condenser|loss SOURCE --out FILE',
  about:
    'SOURCE is a file of questions with passages (JSONL or Parquet: question, answer, passages,\n' +
    'supporting; or HotpotQA’s own fields), a number of made ones, or a run folder.\n\n' +
    'condensed-sft  conversations that work over condensed inputs and recall what the answer needs;\n' +
    '               with --policy that model leads them, told privately what supports the answer\n' +
    'condenser      pairs of an original and its condensed text, kept where questions can still be\n' +
    '               answered; --policy proposes questions for texts that have none\n' +
    'loss           asks the questions on the condensed texts, for each condenser that --condense\n' +
    '               names (several separated by spaces)\n\n' +
    'FILE ends with .jsonl (OpenAI’s shape) or .parquet. An interrupted set goes on when the same\n' +
    'command is given again; what was rejected is in a file of its own, FILE’s name with .rejected.jsonl, with its reason.',
  examples: [
    'espalier dataset condensed-sft hotpot.jsonl --condense keyword:boundary=blank-line --out sft.jsonl',
    'espalier dataset condensed-sft runs/0007 --out sft.parquet',
    'espalier dataset condenser hotpot.jsonl --condense model:policy=openai:http://localhost:8000/v1 --judge openai:http://localhost:8000/v1 --out pairs.jsonl',
    'espalier dataset loss 200 --condense "keyword:ratio=2 keyword:ratio=4"',
  ],
  settings: ['policy', 'model', 'condense', 'judge', 'seed', 'concurrency'],
  defaults: { condense: defaultCondenser },
  own: {
    out: { help: 'The file to write: .jsonl or .parquet', argument: 'FILE' },
    splits: {
      help: 'Parts and their shares (default: train=0.9,held-out=0.1), or none',
      argument: 'SPLITS',
    },
    least: {
      help: 'The least F1 of a taught answer (0.5), reward of a stored one (1), share of questions a pair still answers (0.5)',
      argument: 'X',
    },
    'tell-question': { help: 'With loss: let condensers know the question they will be asked' },
    recalls: { help: 'Most blocks that one conversation recalls (default: 6)', argument: 'N' },
  },
  positionalCount: [2, 2],
  run: runDataset,
}

async function runDataset(invocation: Invocation): Promise<number> {
  const [word] = invocation.positionals
  if (word === 'loss') return await showLoss(invocation)
  const kind = datasetKinds.find(each => each === word)
  if (kind) return await build(kind, invocation)
  throw unknownVerb('dataset', word, [...datasetKinds, 'loss'])
}

async function build(kind: DatasetSource['kind'], invocation: Invocation): Promise<number> {
  const { flags, own, terminal, signal } = invocation
  const { out } = own
  if (!out || !/\.(jsonl|parquet)$/.test(out)) {
    throw new MisuseError('--out FILE is missing, or does not end with .jsonl or .parquet')
  }
  const { policy, model, judge, seed = 0, condense = defaultCondenser } = flags
  const concurrency = typeof flags.concurrency === 'number' ? flags.concurrency : 16
  const made = {
    kind,
    source: invocation.positionals[1]!,
    condense,
    policy,
    model,
    judge,
    least: readNumber(own.least, 'least'),
    mostRecalls: readNumber(own.recalls, 'recalls'),
  }
  const splits = readSplits(own.splits ?? 'train=0.9,held-out=0.1')
  await using opened = await openDatasetItems({ ...made, seed, concurrency })
  const report = await buildDataset(opened.items, {
    out,
    splits,
    seed,
    concurrency,
    signal,
    settings: JSON.parse(JSON.stringify(made)) as Record<string, Json>,
    progress: ({ done, rows, rejected }) =>
      terminal.status(`done ${done}  rows ${rows}${reasons(rejected)}`),
  })
  tellReport(report, invocation)
  return Object.values(report.rows).some(rows => rows > 0) ? 0 : 1
}

function readNumber(text: string | undefined, flag: string): number | undefined {
  if (text === undefined) return undefined
  const number = Number(text)
  if (text !== '' && Number.isFinite(number) && number >= 0) return number
  throw new MisuseError(`--${flag} must be a number from 0 on, not "${text}"`)
}

function tellReport(report: DatasetReport, { terminal, json }: Invocation): void {
  if (json) {
    terminal.print(JSON.stringify(report))
    return
  }
  const rows = Object.entries(report.rows).map(([name, count]) => `${name} ${count}`)
  const resumed = report.resumed > 0 ? `, ${report.resumed} of them from before` : ''
  terminal.print(
    `${report.items} items${resumed}  rows: ${rows.join(', ')}${reasons(report.rejected)}`,
  )
  for (const file of report.files) terminal.print(`  ${file}`)
}

function reasons(rejected: Readonly<Record<string, number>>): string {
  const listed = Object.entries(rejected).map(([reason, count]) => `${reason} ${count}`)
  return listed.length > 0 ? `  rejected: ${listed.join(', ')}` : ''
}

async function showLoss(invocation: Invocation): Promise<number> {
  const { positionals: words, flags, own, terminal, json, signal } = invocation
  const { seed = 0, condense = defaultCondenser, judge, model } = flags
  const asking = { seed, judge, model, signal, tellsQuestion: own['tell-question'] !== undefined }
  const names = splitItems(condense, ' ').filter(Boolean)
  for await (const report of measureLosses(words[1]!, names, asking)) {
    const { condenser, ratio, retention, kept, answerable, failures } = report
    const share = retention === null ? '–' : `${(100 * retention).toFixed(1)} %`
    const failed = failures > 0 ? `  ${failures} chunks not condensed` : ''
    terminal.print(
      json
        ? JSON.stringify(report)
        : `${condenser}  ${ratio.toFixed(2)} : 1  still answered ${share} (${kept} of ${answerable})${failed}`,
    )
  }
  return 0
}
