// Writes docs/reference/config.md from the table of settings: tsx scripts/config-page.ts
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Setting } from '../src/run/settings/setting.ts'
import {
  byTopic,
  type SettingName,
  settingNames,
  settings,
  shownFlag,
} from '../src/run/settings/settings.ts'

const intro = `# Settings

One table is the source of every flag, config key, their JSON schema and this page. A setting comes from, later ones winning:
its default, the config file, a profile of that file, a flag. \`--dry-run\` prints where each value came from. \`--no-NAME\` takes back
what a file says: a switch is off (\`--no-sentinels\`), a list is empty (\`--no-filter\`), the rest is not set (\`--no-condense\`).

\`\`\`sh
npx espalier roll --config espalier.config.toml --profile laptop --group 4 --dry-run
\`\`\`

## The config file

\`espalier.config.ts\`, \`.toml\` or \`.json\` in the working folder, or what \`--config\` names. The TypeScript form is typed:

\`\`\`ts
import { defineConfig } from 'espalier'

export default defineConfig({
  environment: './shop.ts#shop',
  tasks: 'tasks.jsonl',
  policy: 'sglang:http://localhost:30000',
  concurrency: { policy: 128, tools: 32 },
  budget: { tokens: 2_000_000, money: 5, price: { prompt: 0.1, sampled: 0.4 } },
  notify: [{ kind: 'webhook', urlVariable: 'NOTICE_URL', on: ['failure', 'warning'] }],
  profiles: { laptop: { policy: 'scripted:answers.jsonl', group: 2 } },
})
\`\`\`

\`\`\`toml
environment = "./shop.ts#shop"
tasks = "tasks.jsonl"
policy = ["sglang:http://one:30000", "sglang:http://two:30000"]

[budget]
tokens = 2_000_000

[profiles.laptop]
policy = "scripted:answers.jsonl"
\`\`\`

\`espalier --help config --json > espalier.schema.json\` writes a JSON schema; \`"$schema": "./espalier.schema.json"\` in a JSON
config lets editors complete and check it. Unknown keys and impossible values are refused, with file and line, what was possible,
and the nearest name.

In \`NAME:option=value,…\` a comma that belongs to a value, as in a path, is written \`\\,\`.

Parts of your own (environment, reward, filter, trainer) are named \`./file.ts#export\`; TypeScript is compiled on the way, on every
supported Node. Keys of servers come from the variable that \`keyVariable\` names, addresses and secrets of \`notify\` from files or
variables; none of them is ever printed or written into a run.

## All settings
`

/** The page of all settings, as Markdown. */
export function configPage(): string {
  const tables = byTopic(settingNames).flatMap(({ topic, names }) => [
    `### ${topic}\n`,
    '| key | flag | default | |',
    '| --- | --- | --- | --- |',
    ...names.map(name => rowOf(name, settings[name])),
    '',
  ])
  return [intro, ...tables].join('\n')
}

function rowOf(name: SettingName, { help, default: value }: Setting): string {
  const shown = value === undefined ? '' : `\`${JSON.stringify(value)}\``
  return `| \`${name}\` | \`${cell(shownFlag(name))}\` | ${shown} | ${cell(help)} |`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync('docs/reference/config.md', configPage())
