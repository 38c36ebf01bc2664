/** How a kernel is bound: what its arrays are called, and whether it writes them. */
export interface Kernel {
  /** Numbers that differ from run to run: u for whole ones, f for others. */
  readonly numbers: readonly `${'u' | 'f'} ${string}`[]
  /** `x` is read, `x=` written. */
  readonly arrays: readonly string[]
  readonly code: string
}

/** Loops over `count` things with every thread there is. */
export const everyOne = (code: string) => `
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  for (var at = id.x; at < p.count; at += groups.x * 256u) { ${code} }
}`

/** One workgroup for each of many rows, with sums and maxima over it. */
export const byRow = (code: string) => `
var<workgroup> lanes: array<f32, 64>;
fn sum(value: f32, lane: u32) -> f32 {
  lanes[lane] = value;
  for (var half = 32u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) { lanes[lane] += lanes[lane + half]; }
  }
  workgroupBarrier();
  let total = workgroupUniformLoad(&lanes[0]);
  workgroupBarrier();
  return total;
}
fn largest(value: f32, lane: u32) -> f32 {
  lanes[lane] = value;
  for (var half = 32u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) { lanes[lane] = max(lanes[lane], lanes[lane + half]); }
  }
  workgroupBarrier();
  let peak = workgroupUniformLoad(&lanes[0]);
  workgroupBarrier();
  return peak;
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_id) local: vec3u) {
  let lane = local.x;
  let index = group.x * groups.y + group.y;
  ${code}
}`

/** What of a token kernels know: where it stands, where its key lies, where its path is listed, where what follows it ends. */
const structures = `
struct Token { position: u32, cell: u32, path: u32, end: u32 }
struct Row { wanted: i32, inverse: f32, goal: f32, topK: u32, topP: f32, minP: f32 }
struct Found { id: u32, logprob: f32, entropy: f32, sum: f32 }`

/** A kernel's whole text. */
export function shaderOf({ numbers, arrays, code }: Kernel): string {
  const fields = numbers.map(each => `${each.slice(2)}: ${each[0] === 'u' ? 'u32' : 'f32'}`)
  const bindings = arrays.map((each, index) => {
    const [, name, writes, type = 'f32'] = /^(\w+)(=?)(?::(\w+))?$/.exec(each)!
    const access = writes === '' ? 'read' : 'read_write'
    return `@group(0) @binding(${index + 1}) var<storage, ${access}> ${name}: array<${type}>;`
  })
  return [
    structures,
    `struct Numbers { ${fields.join(', ')} }`,
    '@group(0) @binding(0) var<uniform> p: Numbers;',
    ...bindings,
    code,
  ].join('\n')
}
