// Runs models beside their expected outputs in onnxruntime, another runtime, and prints each one's
// largest difference. It is for developers who change the writer (src/onnx/write*.c); no test needs
// it.
//
//   npm install --ignore-scripts onnxruntime-node onnxruntime-common     (in some folder, ORT)
//   BELFRY_ONNX_KEEP=KEPT build/release/tests/unit_tests test_onnx_write
//   ORT=… node tests/onnx/onnxruntime.mjs KEPT
//
// For each NAME.onnx, KEPT has a list NAME.txt with a line "in|out NAME TYPE [SHAPE]" for each
// tensor. The elements are in NAME.0, NAME.1 … in the order of the list. Exits with 1 if one
// differs by more than 1e-5 (of its size, if that is above 1).
import { createRequire } from 'node:module';
import fs from 'node:fs';
const require = createRequire((process.env.ORT ?? '.') + '/node_modules/');
const ort = require('onnxruntime-node');

const folder = process.argv[2];
const types = {
  f32: ['float32', Float32Array], f64: ['float64', Float64Array], i64: ['int64', BigInt64Array],
  i32: ['int32', Int32Array], bool: ['bool', Uint8Array], u8: ['uint8', Uint8Array],
};

function read(name) {
  return fs.readFileSync(`${folder}/${name}.txt`, 'utf8').trim().split('\n').map((line, i) => {
    const [way, port, type, ...shape] = line.split(' ');
    const bytes = fs.readFileSync(`${folder}/${name}.${i}`);
    const elements = new types[type][1](new Uint8Array(bytes).buffer);
    const dims = shape.join(' ').replace(/[[\]]/g, '').split(',').filter(s => s.trim() !== '').map(Number);
    return { way, port, type, elements, dims };
  });
}

function difference(a, b) {
  if (a.length !== b.length) return Infinity;
  let most = 0;
  for (let i = 0; i < a.length; i++) {
    const x = Number(a[i]), y = Number(b[i]);
    if (Object.is(x, y) || x === y) continue;
    most = Math.max(most, Math.abs(x - y) / Math.max(1, Math.abs(y)) || Infinity);
  }
  return most;
}

let worst = 0, failed = 0, lacking = 0, count = 0;
for (const file of fs.readdirSync(folder).filter(f => f.endsWith('.onnx')).sort()) {
  const name = file.slice(0, -5), tensors = read(name);
  count++;
  try {
    const options = { intraOpNumThreads: 1, logSeverityLevel: 3 };
    const session = await ort.InferenceSession.create(`${folder}/${file}`, options);
    const feeds = {};
    for (const t of tensors.filter(t => t.way === 'in'))
      if (session.inputNames.includes(t.port)) feeds[t.port] = new ort.Tensor(types[t.type][0], t.elements, t.dims);
    const results = await session.run(feeds);
    const outs = tensors.filter(t => t.way === 'out');
    for (let o = 0; o < outs.length; o++) {
      const got = results[session.outputNames[o]];
      const d = difference(got.data, outs[o].elements);
      worst = Math.max(worst, d);
      if (d > 1e-5 || got.dims.join() !== outs[o].dims.join()) {
        console.log(`${name}: output ${session.outputNames[o]} [${got.dims}] differs by ${d}`);
        failed++;
      }
    }
  } catch (error) {
    console.log(`${name}: ${error.message.slice(0, 300)}`);
    if (error.message.includes('Could not find an implementation')) lacking++;
    else failed++;
  }
}
console.log(`${count} models, largest difference ${worst}, ${failed} wrong, ${lacking} with a type that it lacks`);
process.exit(failed > 0 ? 1 : 0);
