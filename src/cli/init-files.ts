import { packageVersion } from '../base/core/process/package-version.ts'

const shop = `import { environment, tool } from 'espalier'
import { z } from 'zod'

/** A shop that sells pears: the policy looks, sells what was asked for, or says no. */
export const shop = environment({
  name: 'shop',
  task: z.object({ stock: z.int(), wanted: z.int() }),
  open({ data }) {
    let left = data.stock
    const count = tool({
      description: 'How many pears are left.',
      inputSchema: z.object({}),
      execute: () => left,
    })
    const sell = tool({
      description: 'Sells pears.',
      inputSchema: z.object({ pears: z.int() }),
      execute: ({ pears }) => (left -= pears),
    })
    const content = \`Sell \${data.wanted} pears, or say no if there are too few.\`
    return {
      opening: [{ role: 'user', content }],
      tools: { count, sell },
      report: () => ({ left }),
    }
  },
  reward: {
    right: ({ task: { data }, report, answer }) =>
      Number(data.wanted > data.stock ? answer === 'no' : report.left === data.stock - data.wanted),
    looked: { weight: 0.1, score: ({ calls }) => Number(calls[0]?.tool === 'count') },
  },
})
`

const config = `import { defineConfig } from 'espalier'

export default defineConfig({
  environment: './shop.ts#shop',
  tasks: 'tasks.jsonl',
  policy: 'sglang:http://localhost:30000',
  group: 8,
  maxTurns: 6,
  profiles: {
    // Runs at once, without a server: the answers are written down.
    laptop: { policy: 'scripted:answers.jsonl', group: 2, concurrency: 4 },
  },
})
`

const test = `import { roll } from 'espalier'
import { scripted } from 'espalier/testing'
import { expect, it } from 'vitest'
import { shop } from './shop.ts'

const call = (name: string, input: object): string =>
  \`<tool_call>\\n\${JSON.stringify({ name, arguments: input })}\\n</tool_call>\`

it('pays for looking and for selling the right number', async () => {
  const policy = await scripted([call('count', {}), call('sell', { pears: 3 }), 'sold'])
  for await (const group of roll(shop, [{ stock: 9, wanted: 3 }], { policy, group: 1 })) {
    expect(group.members.map(({ reward }) => reward.total)).toEqual([1.1])
  }
})
`

const call = (name: string, input: object): string =>
  `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`

/** The stock, what is wanted, and what a script sells; nothing if it says no. */
const stories: readonly (readonly [stock: number, wanted: number, sold?: number])[] = [
  [9, 3, 3],
  [5, 5, 5],
  [2, 4],
  [12, 7, 7],
  [1, 6, 6],
  [8, 2, 3],
]

const lines = (records: readonly object[]): string =>
  records.map(record => `${JSON.stringify(record)}\n`).join('')

const tasks = lines(stories.map(([stock, wanted], index) => ({ id: index + 1, stock, wanted })))

const answers = lines(
  stories.flatMap(([, , sold], index) => {
    const task = String(index + 1)
    const rest = sold === undefined ? ['no'] : [call('sell', { pears: sold }), 'sold']
    return [call('count', {}), ...rest].map(text => ({ task, text }))
  }),
)

const readme = `# A shop that sells pears

\`shop.ts\` is the environment, \`tasks.jsonl\` its tasks, \`espalier.config.ts\` the settings.

    npx espalier roll --profile laptop      # rolls at once, with answers that are written down
    npx espalier show runs/0001
    npx espalier check ./shop.ts#shop --tasks tasks.jsonl
    npx vitest run

With a server of your own (SGLang, vLLM, llama.cpp, OpenAI-compatible) behind \`policy\`:

    npx espalier roll --dry-run
    npx espalier roll
    npx espalier export runs/0002 --to jsonl --out rows.jsonl
`

/** The files of a small project that runs at once, by name. */
export function initFiles(name: string): Readonly<Record<string, string>> {
  const manifest = {
    name,
    private: true,
    type: 'module',
    scripts: { roll: 'espalier roll --profile laptop', test: 'vitest run' },
    dependencies: { espalier: `^${packageVersion()}`, zod: '^4.0.0' },
    devDependencies: { typescript: '^5.9.0', vitest: '^4.0.0' },
  }
  const compiler = {
    target: 'es2023',
    module: 'nodenext',
    strict: true,
    noEmit: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
  }
  return {
    'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
    'tsconfig.json': `${JSON.stringify({ compilerOptions: compiler }, null, 2)}\n`,
    'espalier.config.ts': config,
    'shop.ts': shop,
    'shop.test.ts': test,
    'tasks.jsonl': tasks,
    'answers.jsonl': answers,
    '.gitignore': 'node_modules/\nruns/\n',
    'README.md': readme,
  }
}
