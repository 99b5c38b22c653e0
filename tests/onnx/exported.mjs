// Runs an exported model in onnxruntime on rows of a CSV file and compares with what `belfry
// predict` wrote; exported.sh calls it. Prints the largest difference; exits with 1 above 1e-5.
// usage: ORT=… node exported.mjs EXPORT DATA.csv PREDICTED.csv
import { createRequire } from 'node:module';
import fs from 'node:fs';
const require = createRequire((process.env.ORT ?? '.') + '/node_modules/');
const ort = require('onnxruntime-node');
const [folder, data, predicted] = process.argv.slice(2);

const signature = JSON.parse(fs.readFileSync(`${folder}/signature.json`));
const lines = fs.readFileSync(data, 'utf8').trim().split('\n').map(line => line.split(','));
const rows = lines.slice(1), place = name => lines[0].indexOf(name);

// FNV-1a would do for other hashes; ids of whole numbers are themselves (docs/formats/export.md).
function feed(input) {
  const shape = input.shape.map(d => d === 'N' ? rows.length : d);
  const count = shape.reduce((a, b) => a * b, 1);
  if (input.name === 'x') {
    const columns = signature.columns.columns.map(place);
    return new ort.Tensor('float32', Float32Array.from(rows.flatMap(r => columns.map(c => Number(r[c])))), shape);
  }
  if (input.name === 'length') {
    return new ort.Tensor('int64', BigInt64Array.from(rows.map(r => BigInt(r[place('length')]))), shape);
  }
  throw new Error(`${input.name}: ${count} elements of what?`);
}

const session = await ort.InferenceSession.create(`${folder}/model.onnx`, { intraOpNumThreads: 1, logSeverityLevel: 3 });
const feeds = Object.fromEntries(signature.inputs.map(i => [i.name, feed(i)]));
const results = await session.run(feeds);
const got = results[signature.outputs[0].name].data;
const want = fs.readFileSync(predicted, 'utf8').trim().split('\n').flatMap(l => l.split(',').slice(1).map(Number));
let most = got.length === want.length ? 0 : Infinity;
for (let i = 0; i < want.length; i++) most = Math.max(most, Math.abs(got[i] - want[i]) || (got[i] === want[i] ? 0 : Infinity));
console.log(`${folder}: ${rows.length} rows, largest difference ${most}`);
process.exit(most <= 1e-5 ? 0 : 1);
