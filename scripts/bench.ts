// Runs the benchmarks of `bench/`: `npm run bench -- [NAME…] [--json]`.
import { readdirSync } from 'node:fs'

const argv = process.argv.slice(2)
const known = readdirSync(new URL('../bench', import.meta.url))
  .filter(file => file.endsWith('.bench.ts'))
  .map(file => file.replace('.bench.ts', ''))
const names = argv.filter(word => !word.startsWith('--'))
const unknown = names.find(name => !known.includes(name))
if (unknown !== undefined) {
  console.error(`No benchmark called "${unknown}". Known: ${known.join(', ')}.`)
  process.exit(2)
}
for (const each of names.length === 0 ? known : names) {
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
