"""A program that trains with PyTorch in one process; many.py is the same in many. usage: python3 one.py DIGITS.csv"""
import csv
import sys

import torch

with open(sys.argv[1], encoding="utf-8") as file:
    rows = torch.tensor([[float(cell) for cell in row] for row in list(csv.reader(file))[1:]])
data = torch.utils.data.TensorDataset(rows[:, :-1] / 16, rows[:, -1].long())

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(5):
    total = 0.0
    for x, y in torch.utils.data.DataLoader(data, batch_size=32, shuffle=True):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += float(loss) * len(y)
    print(f"epoch {epoch}: loss {total / len(data):.4f}")
