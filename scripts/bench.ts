// Runs the benchmarks of `bench/`: `npm run bench -- [NAME] [--json]`.
import { readdirSync } from 'node:fs'

const argv = process.argv.slice(2)
const known = readdirSync(new URL('../bench', import.meta.url))
  .filter(file => file.endsWith('.bench.ts'))
  .map(file => file.replace('.bench.ts', ''))
const name = argv.find(word => !word.startsWith('--'))
if (name !== undefined && !known.includes(name)) {
  console.error(`No benchmark called "${name}". Known: ${known.join(', ')}.`)
  process.exit(2)
}
for (const each of name === undefined ? known : [name]) {
  const { bench } = (await import(`../bench/${each}.bench.ts`)) as {
    bench(options: { json: boolean }): Promise<object>
  }
  const figures: { readonly missed?: readonly string[] } = await bench({
    json: argv.includes('--json'),
  })
  if (argv.includes('--json')) console.log(JSON.stringify({ bench: each, ...figures }))
  // Unmet expectations are printed and fail the benchmark.
  for (const line of figures.missed ?? []) {
    console.error(`missed: ${line}`)
    process.exitCode = 1
  }
}
