"""What people see while they wait and afterwards: a line of status, and tables in notebooks."""
